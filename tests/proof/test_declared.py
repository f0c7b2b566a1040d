"""Tests that answers match the adapter's declarations: its provider, its phases, its profiles."""

from pathlib import Path
from typing import Any

from snnbench.cases.case import PROFILES
from snnbench.cases.outcome import Outcome
from snnbench.worker.messages import Measure, Reply
from tests.examination import reply_to
from tests.fakes import CASE, CORRECT, altered, document, overridden, profile, quantities, request
from tests.recordings import EXACT


def replied(folder: Path, source: str, measure: Measure = "time", **changes: Any) -> Reply:
    return reply_to(folder, source, request(measure, CASE.with_(**changes)))


def test_framework_without_profiler_is_matched_by_its_name(tmp_path: Path) -> None:
    reply = replied(tmp_path, CORRECT + '\nPROVIDER = ("cuda",)\n', "verify")
    assert reply.outcome.reason == "no kernel like 'cuda' ran in inference on numpy; what ran: numpy"
    assert replied(tmp_path, CORRECT + '\nPROVIDER = ("numpy", "numpy")\n').outcome.verdict == "exact"


def test_inference_only_library_is_measured_without_backward(tmp_path: Path) -> None:
    source = altered("return Network(right.forward, None)") + '\nINFERENCE_ONLY = "it learns by a local rule"\n'
    expected = Outcome(status="measured", verdict="exact", inference_only="it learns by a local rule")
    timed = replied(tmp_path, source)
    assert timed.outcome == expected
    assert set(timed.phases) == {"inference"}
    assert {name for name, check in timed.checks.items() if check["gradient_errors"]} == set()
    assert replied(tmp_path, source, "verify").outcome == expected
    weighed = replied(tmp_path, source, "memory")
    assert (weighed.outcome, weighed.memory["phase"]) == (expected, "inference")
    refused = reply_to(tmp_path, source, request("time", phases=("forward", "backward", "train")))
    assert refused.outcome.reason == "inference only: it learns by a local rule"


def test_inference_only_library_with_wrong_spikes_is_incorrect(tmp_path: Path) -> None:
    source = altered("""
    def forward(x):
        spikes, kept = right.forward(x)
        return spikes[::-1].copy(), kept

    return Network(forward, None)
    """)
    assert replied(tmp_path, source + '\nINFERENCE_ONLY = "no"\n').outcome.kind == "incorrect"


def test_undeclared_profile_is_refused(tmp_path: Path) -> None:
    source = CORRECT + '\nEXACT = ("zero", "none")\n'
    for name in PROFILES:
        outcome = replied(tmp_path, source, "verify", **profile(name)).outcome
        named = name in ("zero", "none")
        assert outcome.verdict == ("exact" if named else None)
        assert named or outcome.reason == "is the reference in zero, none only"


def test_unavailable_exception_is_a_skip(tmp_path: Path) -> None:
    raising = "from snnbench.adapter import Unavailable\nraise Unavailable('needs a toolkit')"
    expected = Outcome(status="skipped", kind="unavailable", reason="needs a toolkit")
    assert replied(tmp_path, altered(raising)).outcome == expected
    assert replied(tmp_path, f"{raising}\n{CORRECT}").outcome == expected, "at import, too"


def profiled(looks: str) -> str:
    """A fake with a profiler that returns this expression, in which `next(looks)` is the look's number."""
    session = overridden(f"def ran(self, phase):\n    return {looks}")
    return "import itertools\n\nlooks = itertools.count()\n" + session + '\nPROVIDER = ("^fast_kernel",)\n'


def test_profiler_looks_again_before_a_kernel_is_missing(tmp_path: Path) -> None:
    for looks in ('["fast_kernel"][next(looks) % 3 < 2 :]', '["other", "fast_kernel"][: 1 + (next(looks) % 3 == 2)]'):
        reply = replied(tmp_path, profiled(looks))
        assert reply.outcome == EXACT, looks
        assert reply.settings["ran"] == ["fast_kernel"]


def test_profiler_takes_three_looks_at_most(tmp_path: Path) -> None:
    reply = replied(tmp_path, profiled('["other", "fast_kernel"][: 1 + (next(looks) == 3)]'))
    assert (reply.outcome.kind, reply.phases) == ("incorrect", {})
    assert reply.outcome.reason.endswith("ran in inference on numpy; what ran: other")


def test_empty_profile_is_unavailable_and_not_incorrect(tmp_path: Path) -> None:
    reply = replied(tmp_path, profiled("[]"))
    assert (reply.outcome.status, reply.outcome.kind) == ("skipped", "unavailable")
    assert reply.outcome.reason.startswith("the profiler saw nothing of inference, so which kernel ran is unknown")
    assert quantities(document(reply)) == []

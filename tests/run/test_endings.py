"""Tests of outcomes: from a worker's ending to its outcome, and from earlier outcomes to later ones."""

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from snnbench import files
from snnbench.cases.outcome import FAILURES, SKIPS, VERDICTS, FailureKind, Outcome, SkipKind, Verdict
from snnbench.plan.cell import Cell
from snnbench.recording.flags import raised
from snnbench.recording.record import Record
from snnbench.run import endings, known_outcomes
from snnbench.run.process import Ending
from snnbench.run.request import RunRequest
from snnbench.worker.messages import Measure, Reply, decode_reply
from tests.bench import Bench, bench
from tests.fakes import CASE
from tests.recordings import EXACT

__all__ = ["bench"]

MEASURED = EXACT
OUT_OF_MEMORY = Outcome(status="failed", kind="oom-host", reason="MemoryError")
UNSUPPORTED = Outcome(status="skipped", kind="unsupported", reason="no such reset")
LARGER = CASE.with_(neurons=CASE.neurons * 2)


def ended(
    reply: Any = None, status: int = 0, timed_out: bool = False, log: str = "", oom_killed: bool = False
) -> Ending:
    """The ending of a worker; `reply` is an outcome."""
    return Ending(None if reply is None else Reply(reply), status, timed_out, log, 1.0, oom_killed)


@pytest.mark.parametrize(
    ("ending", "kind", "reason"),
    [
        (ended(timed_out=True, status=-9), "timeout", "no reply within 2.5 s; killed"),
        (ended(status=-9, oom_killed=True), "oom-host", "killed by the kernel, which was out of memory"),
        (ended(status=-signal.SIGSEGV), "crash", "died of SIGSEGV"),
        (ended(status=-signal.SIGKILL), "crash", "died of SIGKILL"),
        (ended(status=-signal.SIGRTMIN - 3), "crash", f"died of signal {signal.SIGRTMIN + 3}"),
        (ended(status=-signal.SIGABRT, log="one\nfree(): bad\n\n"), "crash", "died of SIGABRT: free(): bad"),
        (ended(status=3), "crash", "exit status 3"),
        (ended(status=1, log="  ValueError: no  \n"), "crash", "exit status 1: ValueError: no"),
        (ended(), "lost", "exit status 0 without a whole reply"),
        (ended(log="half a word"), "lost", "exit status 0 without a whole reply: half a word"),
    ],
)
def test_end_without_a_reply_has_its_kind_and_reason(ending: Ending, kind: str, reason: str) -> None:
    assert endings.outcome_of(ending, 2.5) == Outcome(status="failed", kind=kind, reason=reason)


def broken(kind: str, reason: str) -> Outcome:
    """A failure."""
    return Outcome(status="failed", kind=kind, reason=reason)


@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        (ended(broken("crash", "OSError: [Errno 24] Too many open files: 'x'")), "cancelled"),
        (ended(broken("import", "ImportError: lib.so: Too many open files")), "cancelled"),
        (ended(status=1, log="OSError: [Errno 28] No space left on device"), "cancelled"),
        (ended(broken("crash", "RuntimeError: can't start new thread")), "cancelled"),
        (ended(broken("crash", "x"), log="OSError: [Errno 30] y\nValueError: x"), "cancelled"),
        (ended(broken("crash", "x"), log="warning: [Errno 30] no cache"), "crash"),
        (ended(broken("incorrect", "No space left on device")), "incorrect"),
    ],
)
def test_what_the_state_of_the_machine_broke_is_run_again(ending: Ending, kind: str) -> None:
    """It was a crash of the library, and stayed one once the disk had room again."""
    assert endings.outcome_of(ending, 2.5).kind == kind


@pytest.mark.parametrize("outcome", [MEASURED, OUT_OF_MEMORY, UNSUPPORTED])
@pytest.mark.parametrize("status", [0, -signal.SIGSEGV], ids=["ended well", "died after the reply"])
def test_whole_reply_gives_its_own_outcome(outcome: Outcome, status: int) -> None:
    assert endings.outcome_of(ended(outcome, status), 2.5) == outcome


@pytest.mark.parametrize(
    "outcome",
    [
        {},
        {"status": "measured"},
        {"status": "measured", "verdict": "fast"},
        {"status": "measured", "verdict": "incorrect"},
        {"status": "measured", "verdict": ["exact"]},
        {"status": "failed", "kind": "crash"},
        {"status": "failed", "kind": "unsupported", "reason": "x"},
        {"status": "skipped", "kind": "tired", "reason": "x"},
        {"status": "won"},
    ],
    ids=str,
)
def test_reply_with_an_invalid_outcome_is_lost(outcome: dict[str, Any]) -> None:
    reply = decode_reply(json.dumps({"protocol": 1, "outcome": outcome}).encode() + b"\n")
    assert reply is not None and reply.outcome is None
    assert endings.outcome_of(Ending(reply, 0, False, "", 1.0), 2.5).kind == "lost"


def test_failed_cells_are_counted_with_the_option_that_runs_them_again() -> None:
    outcomes = [broken("timeout", "x"), broken("crash", "x"), broken("crash", "y"), MEASURED, UNSUPPORTED]
    request = RunRequest(config=None)  # type: ignore[arg-type]
    assert request.retries(outcomes) == "; 3 failed: --retry crash,timeout runs them again"
    assert replace(request, test=object()).retries(outcomes).endswith("--fresh runs them again"), "ab has no --retry"
    assert request.retries([MEASURED]) == ""


def test_long_last_line_is_cut() -> None:
    assert len(endings.outcome_of(ended(status=1, log="x" * 5000), 2.5).reason) < 250


def test_lists_of_words_and_their_types_agree() -> None:
    for words, kind in ((FAILURES, FailureKind), (SKIPS, SkipKind), (VERDICTS, Verdict)):
        assert tuple(words) == get_args(kind)


def cell(library: str = "a", trial: int = 0, measure: Measure = "time", case: Any = CASE) -> Cell:
    """A cell of a fake."""
    return Cell(case, library, "default", trial, measure)


def predicted(learned: Outcome, of: Cell) -> Outcome | None:
    """The prediction for a cell after the first cell of `a` ended with this outcome."""
    inference = known_outcomes.KnownOutcomes()
    inference.learn(cell(), learned)
    return inference.predict(of)


def test_unsupported_case_is_predicted_after_its_first_trial() -> None:
    for later in (cell(trial=1), cell(measure="memory")):
        assert predicted(UNSUPPORTED, later) == UNSUPPORTED
    for other in (cell(library="b"), cell(case=LARGER)):
        assert predicted(UNSUPPORTED, other) is None


@pytest.mark.parametrize("learned", [UNSUPPORTED, OUT_OF_MEMORY])
def test_outcomes_of_the_sides_are_independent(learned: Outcome) -> None:
    inference = known_outcomes.KnownOutcomes()
    inference.learn(replace(cell(), side="base"), learned)
    of_case = CASE if learned is UNSUPPORTED else LARGER
    assert inference.predict(replace(cell(case=of_case, trial=1), side="base")) is not None
    assert inference.predict(replace(cell(case=of_case, trial=1), side="new")) is None


@pytest.mark.parametrize("kind", ["oom-host", "oom-device"])
@pytest.mark.parametrize("name", CASE.SIZES)
def test_out_of_memory_is_inferred_for_larger_cases(name: str, kind: str) -> None:
    larger = CASE.with_(**{name: getattr(CASE, name) + 1})
    outcome = predicted(replace(OUT_OF_MEMORY, kind=kind), cell(case=larger))
    assert outcome == Outcome(
        status="failed",
        kind=kind,
        reason="inferred: it already ran out at neurons=48, batch=7, time_steps=20, layers=1",
        inferred_from="neurons=48, batch=7, time_steps=20, layers=1",
    )


@pytest.mark.parametrize(
    "of",
    [
        cell(trial=1),
        cell(library="b", case=LARGER),
        cell(measure="memory", case=LARGER),
        cell(case=CASE.with_(neurons=CASE.neurons - 1)),
        cell(case=LARGER.with_(batch=CASE.batch - 1)),
        cell(case=LARGER.with_(dtype="float64")),
        cell(case=LARGER.with_(reset="zero")),
        cell(case=LARGER.with_(device="cuda")),
        Cell(LARGER, "a", "other", 0, "time"),
    ],
    ids=str,
)
def test_out_of_memory_is_not_inferred_for_other_cells(of: Cell) -> None:
    assert predicted(OUT_OF_MEMORY, of) is None


@pytest.mark.parametrize(
    "outcome", [MEASURED, *(Outcome(status="failed", kind=k, reason="") for k in ("timeout", "crash"))]
)
def test_other_outcomes_predict_nothing(outcome: dict[str, Any]) -> None:
    assert predicted(outcome, cell(trial=1)) is None
    assert predicted(outcome, cell(case=LARGER)) is None


def test_inferred_outcome_is_not_new_evidence() -> None:
    """Otherwise the reason names a size that was never tried."""
    inference = known_outcomes.KnownOutcomes()
    inference.learn(cell(), OUT_OF_MEMORY)
    inferred = inference.predict(cell(case=LARGER))
    assert inferred is not None
    inference.learn(cell(case=LARGER), inferred)
    again = inference.predict(cell(case=LARGER.with_(batch=99)))
    assert again is not None and again.inferred_from == inferred.inferred_from


@pytest.mark.parametrize(
    ("foreign", "stolen", "threads", "flags"),
    [
        (0.0, 0.0, 2, []),
        (0.1, 0.0, 2, []),
        (0.06, 0.05, 2, ["contended"]),
        (0.0, 0.0, 4, ["threads"]),
        (2.0, 0.0, 1, ["contended", "threads"]),
    ],
)
def test_flags_of_contention_and_wrong_threads(foreign: float, stolen: float, threads: int, flags: list[str]) -> None:
    quiet = {"foreign_cpus": 0.0, "stolen_cpus": 0.0, "own_cpus": 1.0}
    phases = {
        "forward": {"contention": quiet},
        "train": {"contention": {"foreign_cpus": foreign, "stolen_cpus": stolen}},
    }
    assert raised(phases, {}, {"threads": threads}, threads=2, observed=()) == flags


def test_unknown_number_of_threads_is_not_flagged() -> None:
    assert raised({"train": {}}, {}, {}, threads=2, observed=()) == []
    assert raised({"train": {}}, {}, {}, threads=2, observed={"shared", "throttled"}) == [
        "throttled",
        "shared",
    ]


def recorded(bench: Bench, end: Ending | Outcome) -> Record:
    """The record of a cell of a fake; NumPy is its library, of version 0.0 by its environment."""
    bench.add("a")
    return endings.record_of(cell(), "key", bench.setup(), end)


def test_record_has_the_reply_and_the_version_of_the_environment(bench: Bench) -> None:
    reply = Reply(MEASURED, settings={"version": "99"})
    record = recorded(bench, Ending(reply, 0, False, "a log", 1.23456))
    assert (record.cell, record.library, record.outcome, record.version) == ("key", "a", MEASURED, "0.0")
    assert (record.settings, record.wall_s, record.log) == ({"version": "99"}, 1.235, "")


def test_log_names_no_folder_of_the_user(bench: Bench) -> None:
    bench.add("a")
    kept, adapters = files.home(), bench.setup().setups[""].adapters["a"].path.parent
    log = f'"{adapters}/a.py", "{kept}/envs/1/torch.py", "{Path.home()}/b.py"\nError: {kept}/kernels'
    record = recorded(bench, ended(status=1, log=log))
    assert (
        record.log == '"adapters/a.py", "~/.cache/snnbench/envs/1/torch.py", "~/b.py"\nError: ~/.cache/snnbench/kernels'
    )
    assert record.outcome.reason == "exit status 1: Error: ~/.cache/snnbench/kernels"


def test_record_of_a_cell_without_a_worker_has_its_outcome_alone(bench: Bench) -> None:
    record = recorded(bench, UNSUPPORTED)
    assert (record.outcome, record.checks, record.settings, record.wall_s) == (UNSUPPORTED, {}, {}, None)

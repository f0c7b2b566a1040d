"""Tests of the rules for a record's durations and memory, and of the rules that apply to each kind of record."""

from typing import Any

import pytest

from snnbench import measures
from snnbench.cases.outcome import decode
from snnbench.checking import records
from snnbench.measures.memory import harness as memory_rule
from snnbench.plan.config import Protocol
from tests.checking.test_proof import measured
from tests.fakes import CASE
from tests.recordings import record

Document = dict[str, Any]

PROTOCOL = Protocol(
    phases=("inference", "train"),
    trials=1,
    memory_trials=1,
    warmup_passes=2,
    repetitions=7,
    min_repetition_ms=10.0,
    max_phase_seconds=2.0,
    timeout_seconds=9.0,
    seed=0,
)


def timing(**changes: Any) -> Document:
    """A phase as the protocol asks for it."""
    sound = {"first_call_ns": 9, "warmup_ns": [1, 1], "passes": 2, "repetitions_ns": [5] * 7, "compilations": 0}
    return sound | {"fresh_ns": [3] * 5, "drawn_ns": [3]} | changes


def durations(phases: Document, schema: int = 4, **outcome: Any) -> list[str]:
    declared = {"status": "measured", "verdict": "exact", **outcome}
    return list(records.durations(record("a", phases=phases, outcome=decode(declared)), PROTOCOL, schema))


@pytest.mark.parametrize(
    ("repetitions_ns", "sound"),
    [
        ([5] * 7, True),
        ([5] * 8, False),
        ([5] * 6, False),  # its time was not up
        ([287_000_000] * 5, True),  # 1.435 s, and two more of them would end at 2.009 s
        ([285_000_000] * 5, False),  # 1.995 s
        ([900_000_000] * 3, True),
        ([1_500_000_000] * 2, False),  # three at the least
    ],
)
def test_phase_needs_its_repetitions_or_three_if_time_was_up(repetitions_ns: list[int], sound: bool) -> None:
    complaints = durations({"inference": timing(), "train": timing(repetitions_ns=repetitions_ns)})
    count = len(repetitions_ns)
    assert complaints == ([] if sound else [f"train: {count} repetitions, where the protocol asks for 7"])


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"warmup_ns": [1]}, "1 warm-up passes, not 2"),
        ({"warmup_ns": [500_000_001]}, ""),  # over a quarter of the time of a phase
        ({"warmup_ns": []}, "0 warm-up passes, not 2"),
        ({"warmup_ns": [1, 0]}, "durations are not whole nanoseconds above 0"),
        ({"first_call_ns": 0}, "durations are not whole nanoseconds above 0"),
        ({"first_call_ns": 1.5}, "durations are not whole nanoseconds above 0"),
        ({"repetitions_ns": [5, 5, 5, 5, 5, 5, -5]}, "durations are not whole nanoseconds above 0"),
        ({"compilations": 1}, "2 passes a repetition, 1 compilations among them"),
        ({"passes": 0, "fresh_ns": [5], "drawn_ns": []}, "0 passes a repetition, 0 compilations among them"),
        ({"drawn_ns": []}, "5 fresh passes, 0 on content drawn anew, not 5 and 1"),
        ({"fresh_ns": [3] * 4}, "4 fresh passes, 1 on content drawn anew, not 5 and 1"),
        ({"passes": 1}, "a repetition of a single pass is not among the fresh passes"),
        ({"passes": 1, "fresh_ns": [5] * 6, "drawn_ns": [5]}, ""),
        ({"fresh_ns": [3] * 4, "drawn_ns": [3] * 2}, ""),
    ],
)
def test_fault_of_a_phase_is_reported(changes: Document, complaint: str) -> None:
    complaints = durations({"inference": timing(), "train": timing(**changes)})
    assert complaints == ([f"train: {complaint}"] if complaint else [])
    assert all(
        "content drawn" not in text for text in durations({"inference": timing(), "train": timing(**changes)}, 3)
    )


def test_phases_must_match_the_protocol() -> None:
    """A contender without gradients has inference only."""
    assert durations({"train": timing()}) == ["phases train, where the protocol asks for inference, train"]
    assert durations({}) == ["phases none, where the protocol asks for inference, train"]
    assert durations({"inference": timing()}, inference_only="none") == []
    assert durations({"train": timing(), "inference": timing()}, inference_only="none") == [
        "phases train, inference, where the protocol asks for inference"
    ]


@pytest.mark.parametrize(("dtype", "size"), [("float64", 8), ("float32", 4), ("bfloat16", 2)])
@pytest.mark.parametrize(("layers", "numbers"), [(1, 48 * 48 + 20 * 7 * 48), (3, 3 * 48 * 48 + 20 * 7 * 48)])
def test_static_bytes_hold_at_least_weights_and_input(dtype: Any, size: int, layers: int, numbers: int) -> None:
    case = CASE.with_(dtype=dtype, layers=layers)

    def complaints(static_bytes: int, **host: Any) -> list[str]:
        memory = {
            "phase": "train",
            "static_bytes": static_bytes,
            "host": {"peak_bytes": 5, "retained_bytes": None} | host,
        }
        return list(memory_rule.complaints(record("a", "memory", case=case, memory=memory), 8))

    least = size * numbers
    assert complaints(least) == []
    text = f"static_bytes is {least - 1}, less than weights and input take ({least})"
    assert complaints(least - 1) == [text]
    for host in ({"peak_bytes": -1}, {"peak_bytes": 0.5}, {"peak_bytes": None}):
        assert complaints(least, **host) == ["memory is not in whole bytes"]
    assert complaints(least, peak_bytes=0) == []


@pytest.mark.parametrize(
    ("status", "measure", "schema", "rules"),
    [
        ("failed", "memory", 4, set()),
        ("failed", "time", 4, set()),
        ("measured", "memory", 4, {"proof", "memory", "flags"}),
        ("measured", "time", 4, {"proof", "durations", "floor", "flags"}),
        ("measured", "time", 1, {"proof", "durations", "flags"}),
        ("measured", "verify", 4, {"proof", "flags"}),
    ],
)
def test_each_rule_applies_to_its_records(
    monkeypatch: pytest.MonkeyPatch, status: str, measure: str, schema: int, rules: set[str]
) -> None:
    for name in ("outcome", "name", "proof", "durations", "floor", "flags"):
        function = "floors" if name == "floor" else name
        monkeypatch.setattr(records, function, lambda *given, name=name: iter([f"{name} was asked"]))
    memory = measures.Harness(cells="memory", complaints=lambda *given: iter(["memory was asked"]))
    monkeypatch.setattr(measures, "harnesses", lambda: {"memory": memory, "other": measures.Harness()})
    kind = {"verdict": "exact"} if status == "measured" else {"kind": "crash", "reason": "died"}
    complaints = list(
        records.complaints(record("a", measure, outcome=decode({"status": status, **kind})), schema, "", PROTOCOL)
    )
    expected = rules | {"outcome"} | ({"name"} if schema >= 3 else set())
    assert {rule for rule, _ in complaints} == expected and len(complaints) == len(expected)
    assert all(text == f"{rule} was asked" for rule, text in complaints)


@pytest.mark.parametrize(
    "error", [KeyError("x"), TypeError("x"), ValueError("x"), AttributeError("x"), ZeroDivisionError("x")]
)
def test_failing_rule_is_a_complaint(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fails(*given: Any) -> Any:
        raise error

    monkeypatch.setattr(records, "flags", fails)
    cell_record = measured({}, measure="verify")
    texts = [text for rule, text in records.complaints(cell_record, 2, "", PROTOCOL) if rule == "flags"]
    assert texts == [f"malformed: {type(error).__name__}: {error}"]


def test_memory_growth_must_be_flagged() -> None:
    memory = {"phase": "train", "static_bytes": 1, "host": {"growth_bytes": 1 << 20}}
    assert list(records.flags(record("a", "memory", memory=memory, flags=["grows"]))) == []
    assert list(records.flags(record("a", "memory", memory=memory))) == [
        "the record has the flags [], its numbers give ['grows']: ['grows']"
    ]


@pytest.mark.parametrize(
    ("cpus", "complaints"), [(1.1, []), (1.9, ["train uses 1.9 CPUs where the case has 1 thread"])]
)
def test_phase_that_used_more_cpus_than_its_case_has_is_reported(cpus: float, complaints: list[str]) -> None:
    phases = {"inference": timing(), "train": timing(contention={"timed_cpus": cpus})}
    assert durations(phases) == complaints

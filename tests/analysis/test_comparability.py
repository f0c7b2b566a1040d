"""Tests of comparability: required agreement of two recordings, a user's own requirements, and the listed changes."""

from dataclasses import replace
from typing import Any

import pytest

from snnbench.analysis.comparability import Incomparable, changed, matched
from snnbench.recording.reading import Recording
from tests.fakes import CASE, LIF
from tests.recordings import recording, timed

OLD = recording(timed("a", train=1.0), name="old")


def other(case: Any = CASE, **more: Any) -> Recording:
    """A recording called new, of this case."""
    return recording(timed("a", case=case, train=1.0), name="new", **more)


@pytest.mark.parametrize(
    ("new", "kind", "fact"),
    [
        (other(model="a server"), "machine", "machine: 'a laptop' in old, 'a server' in new"),
        (replace(other(), machine={}), "machine", "machine: 'a laptop' in old, unknown in new"),
        (other(warmup_passes=9), "protocol", "protocol.warmup_passes: unknown in old, 9 in new"),
        (other(repetitions=9), "protocol", "protocol.repetitions: 3 in old, 9 in new"),
        (other(memory_limit_gib=2.0), "protocol", "protocol.memory_limit_gib: unknown in old, 2.0 in new"),
        (other(CASE.with_(dtype="float64")), "precision", "precision: dtype: float32 in old, float64 in new"),
        (other(CASE.with_(precision="tf32")), "precision", "precision: ieee in old, tf32 in new"),
        (other(CASE.with_(threads=8)), "threads", "threads: 1 in old, 8 in new"),
    ],
)
def test_differing_fact_is_refused_unless_allowed(new: Recording, kind: str, fact: str) -> None:
    with pytest.raises(Incomparable) as refusal:
        matched(OLD, new)
    assert str(refusal.value).splitlines() == [
        "old and new are not comparable:",
        f"  {fact}",
        f"record one as the other was, or insist: --allow {kind}",
    ]
    cases, facts = matched(OLD, new, [kind])
    assert (list(cases), facts) == ([CASE], [fact])


def test_two_processors_of_one_name_are_not_compared() -> None:
    """An older recording has the name without the processor's family and model."""

    def facts(identity: str) -> dict[str, Any]:
        cpu = {"model": "AMD EPYC", "identity": identity, "usable_cpus": 2}
        return {"model": "AMD EPYC, 2 CPUs, 24 GiB", "cpu": cpu, "memory": {"total_bytes": 24 << 30}, "gpus": []}

    zen4, zen5 = (replace(OLD, machine=facts(identity)) for identity in ("25-17-1", "26-2-1"))
    with pytest.raises(Incomparable, match=r"family 25 model 17.*family 26 model 2"):
        matched(zen4, zen5)
    assert matched(zen4, replace(zen4, machine=facts("25-17-1")))[1] == []


def test_protocol_older_than_a_key_is_read_with_its_default() -> None:
    """Nine shipped recordings lack keys; --allow protocol would have hidden real changes."""
    assert matched(OLD, other(check_seconds=2.0, energy=False, memory_limit_gib=None))[1] == []
    assert matched(OLD, other(energy=True))[1] == [], "it is measured after the times"
    with pytest.raises(Incomparable, match=r"protocol\.memory_limit_gib: unknown in old, 2\.0 in new"):
        matched(OLD, other(memory_limit_gib=2.0))


def test_two_unknown_machines_are_not_the_same() -> None:
    unknown, too = replace(OLD, machine={}), replace(other(), machine={"cpu": "fast"})
    with pytest.raises(Incomparable, match="machine: unknown in old, unknown in new"):
        matched(unknown, too)
    assert matched(unknown, too, ["machine"])[1] == ["machine: unknown in old, unknown in new"]


def test_different_work_cannot_be_allowed() -> None:
    """The refusal has a line for every fact, and offers no --allow for other work."""
    new = other(CASE.with_(neurons=96), model="a server", repetitions=9)
    with pytest.raises(Incomparable) as refusal:
        matched(OLD, new, ["machine"])
    assert str(refusal.value).splitlines() == [
        "old and new are not comparable:",
        "  protocol.repetitions: 3 in old, 9 in new",
        "  work: neurons: 48 in old, 96 in new",
        "record one as the other was; other work cannot be allowed",
    ]


def test_recordings_of_two_workloads_share_no_case() -> None:
    old = recording(timed("a", train=1.0), timed("a", case=LIF, train=1.0), name="old")
    new = recording(timed("a", case=LIF.with_(neurons=96), train=1.0), name="new")
    with pytest.raises(Incomparable) as refused:
        matched(old, new)
    assert "  work: neurons: 48 in old, 96 in new" in str(refused.value).splitlines()


def test_same_values_in_other_combinations_are_different_work() -> None:
    old = recording(timed("a", train=1.0), timed("a", case=CASE.with_(neurons=96, batch=9), train=1.0), name="old")
    new = [timed("a", case=case, train=1.0) for case in (CASE.with_(neurons=96), CASE.with_(batch=9))]
    with pytest.raises(Incomparable, match="work: no case of old is in new"):
        matched(old, recording(*new, name="new"))


def test_empty_recording_is_refused() -> None:
    empty = recording(name="new")
    for pair, lacking in (((OLD, empty), ["new"]), ((empty, OLD), ["new"]), ((empty, empty), ["new", "new"])):
        with pytest.raises(Incomparable) as refusal:
            matched(*pair)
        assert str(refusal.value).splitlines()[1:-1] == [f"  work: no record in {name}" for name in lacking]


def test_field_that_distinguishes_cases_cannot_be_allowed() -> None:
    both = recording(timed("a", train=1.0), timed("a", case=CASE.with_(threads=8), train=1.0), name="old")
    with pytest.raises(Incomparable, match="old: several cases differ in threads only"):
        matched(both, OLD, ["threads"])


@pytest.mark.parametrize(
    "change", [{"trials": 9}, {"seed": 9}, {"timeout_seconds": 1.0}, {"memory_trials": 0}, {"remeasure": 2}]
)
def test_number_and_order_of_trials_may_differ(change: dict[str, Any]) -> None:
    assert matched(OLD, other(**change)) == ({CASE: CASE}, [])


def test_changes_are_listed_by_kind() -> None:
    old, new = OLD, other()
    old = replace(
        old,
        config=old.config | {"snnbench": "0.1"},
        machine={"model": "m", "load": [1], "kernel": "6.1", "gpus": [{"driver": "555", "bytes": 8}]},
        environments={"e": {"torch": "2.12", "numpy": "2.0", "gone": "1"}},
        records=[timed(name, train=1.0, environment="e", version="1.0", adapter="x") for name in ("a", "b/fast", "c")],
    )
    new = replace(
        new,
        config=new.config | {"snnbench": "0.2"},
        machine={"model": "m", "load": [2], "kernel": "6.2", "gpus": [{"driver": "560", "bytes": 8}]},
        environments={"f": {"torch": "2.13", "numpy": "2.0"}},
        records=[
            timed("a", train=1.0, environment="f", version="1.1", adapter="x"),
            timed("b/fast", train=1.0, environment="f", version="1.0", adapter="y"),
            timed("new", train=1.0, environment="f"),
        ],
    )
    assert changed(old, new) == [
        "snnbench: '0.1' -> '0.2'",
        "machine kernel: '6.1' -> '6.2'",
        "machine gpus.0.driver: '555' -> '560'",
        "a: 1.0 -> 1.1",
        "gone: 1 -> none (a, b)",
        "torch: 2.12 -> 2.13 (a, b)",
        "adapter of b: another file",
    ]
    assert changed(old, old) == []


def test_fact_unknown_to_one_machine_is_listed() -> None:
    knowing, ignorant = (replace(OLD, machine={"model": "m"} | more) for more in ({"kernel": "6.1"}, {}))
    assert changed(knowing, ignorant) == ["machine kernel: '6.1' -> unknown"]
    assert changed(ignorant, knowing) == ["machine kernel: unknown -> '6.1'"]


def test_several_versions_are_listed_in_order() -> None:
    several = replace(OLD, records=[timed("a", trial, train=1.0, version=f"1.{trial}") for trial in (4, 2, 7, 0, 5, 1)])
    assert changed(several, OLD) == ["a: 1.0, 1.1, 1.2, 1.4, 1.5, 1.7 -> 1.0"]

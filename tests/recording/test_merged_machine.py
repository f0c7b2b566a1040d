"""Tests of the facts that vary between the machines of a merge."""

from itertools import permutations
from typing import Any

from snnbench.recording.merged_machine import joined


def machine(host: str, **facts: Any) -> dict[str, Any]:
    """A machine of model M."""
    known: dict[str, Any] = {"model": "M", "kernel": "6.1", "image": None, "load": [float(len(host)), 0.0, 0.0]}
    return {"host": host, "cpu": {"allowed_cpus": [len(host)], "turbo": True}, "environment": {}, **known, **facts}


def test_one_machine_is_itself() -> None:
    assert joined([machine("a")]) == machine("a") | {"hosts": ["a"]}


def test_hosts_loads_and_the_cpus_of_a_process_are_nobody_s_difference() -> None:
    assert joined([machine("bbb"), machine("a"), machine("a")])["hosts"] == ["a", "bbb"]
    assert "varying" not in joined([machine("bbb"), machine("a")])


def test_facts_that_differ_are_kept_with_all_values() -> None:
    one = machine("a", environment={"OMP_WAIT_POLICY": "active"}, image={"name": "x"})
    assert joined([one, machine("b", kernel="5.9"), machine("c")])["varying"] == {
        "environment.OMP_WAIT_POLICY": ["active", None],
        "image.name": ["x", None],
        "kernel": ["5.9", "6.1"],
    }


def test_of_cards_the_kind_counts_and_not_which_or_how_many() -> None:
    def cards(*uuids: str, driver: str = "550") -> list[dict[str, Any]]:
        return [{"name": "H", "uuid": uuid, "driver": driver} for uuid in uuids]

    one, two = machine("a", gpus=cards("1", "2")), machine("b", gpus=cards("3"))
    assert "varying" not in joined([one, two])
    assert joined([one, machine("c", gpus=cards("4", driver="560"))])["varying"] == {"gpus.driver": [["550"], ["560"]]}


def test_any_order_and_any_steps_give_the_same() -> None:
    three = [machine("a", kernel="6.2"), machine("b", environment={"X": "1"}), machine("c", kernel="6.3", libc="g")]
    whole = joined(three)
    assert whole["varying"].keys() == {"kernel", "environment.X", "libc"}
    for one, two, last in permutations(three):
        assert joined([one, two, last]) == joined([joined([one, two]), last]) == joined([last, whole, one]) == whole

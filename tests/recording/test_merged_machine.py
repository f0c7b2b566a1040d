"""Tests of the facts that vary between the machines of a merge."""

from itertools import permutations
from pathlib import Path
from typing import Any

from snnbench.recording.merged_machine import joined
from snnbench.recording.reading import MACHINE, document
from snnbench.recording.writer import append


def machine(host: str, **facts: Any) -> dict[str, Any]:
    """A machine of model M."""
    known: dict[str, Any] = {"model": "M", "kernel": "6.1", "image": None, "load": [float(len(host)), 0.0, 0.0]}
    return {"host": host, "cpu": {"allowed_cpus": [len(host)], "turbo": True}, "environment": {}, **known, **facts}


def test_one_machine_is_itself() -> None:
    assert joined([machine("a")]) == machine("a") | {"hosts": ["a"]}


def test_differing_hosts_loads_and_cpus_are_ignored() -> None:
    assert joined([machine("bbb"), machine("a"), machine("a")])["hosts"] == ["a", "bbb"]
    assert "varying" not in joined([machine("bbb"), machine("a")])


def test_differing_facts_are_kept_with_all_values() -> None:
    first = machine("a", environment={"OMP_WAIT_POLICY": "active"}, image={"name": "x"})
    assert joined([first, machine("b", kernel="5.9"), machine("c")])["varying"] == {
        "environment.OMP_WAIT_POLICY": ["active", None],
        "image.name": ["x", None],
        "kernel": ["5.9", "6.1"],
    }


def test_kind_of_gpu_counts_but_not_its_uuid_or_number() -> None:
    def cards(*uuids: str, driver: str = "550") -> list[dict[str, Any]]:
        return [{"name": "H", "uuid": uuid, "driver": driver} for uuid in uuids]

    first, second = machine("a", gpus=cards("1", "2")), machine("b", gpus=cards("3"))
    assert "varying" not in joined([first, second])
    assert joined([first, machine("c", gpus=cards("4", driver="560"))])["varying"] == {
        "gpus.driver": [["550"], ["560"]]
    }


def test_joining_is_commutative_and_associative() -> None:
    three = [machine("a", kernel="6.2"), machine("b", environment={"X": "1"}), machine("c", kernel="6.3", libc="g")]
    whole = joined(three)
    assert whole["varying"].keys() == {"kernel", "environment.X", "libc"}
    for first, second, last in permutations(three):
        assert (
            joined([first, second, last])
            == joined([joined([first, second]), last])
            == joined([last, whole, first])
            == whole
        )


def test_what_changed_between_two_halves_stands_in_the_recording(tmp_path: Path) -> None:
    """A run that continued under another setting said `environment: {}`, and the check was clean."""
    about = {"identity": "x", "snnbench": "1.0"}
    halves = (
        (about, machine("a")),
        (about, machine("a", load=[9.0])),
        (about, machine("b", kernel="6.2", environment={"OMP_PROC_BIND": "true"})),
        (about | {"snnbench": "1.1"}, machine("a", environment={"OMP_PROC_BIND": "close"})),
    )
    for config, facts in halves:
        before = document(tmp_path / MACHINE)
        with append(tmp_path, config, facts) as writer:
            differing = writer.resume()
    assert differing == ["environment.OMP_PROC_BIND", "kernel", "snnbench"]
    assert before == machine("a") | {"hosts": ["a", "b"]} | {
        "varying": {"environment.OMP_PROC_BIND": ["true", None], "kernel": ["6.1", "6.2"]}
    }
    assert document(tmp_path / MACHINE)["varying"] == {
        "environment.OMP_PROC_BIND": ["close", "true", None],
        "kernel": ["6.1", "6.2"],
        "snnbench": ["1.0", "1.1"],
    }
    with append(tmp_path, about, machine("c")):  # nothing is measured on it
        pass
    assert document(tmp_path / MACHINE)["hosts"] == ["a", "b"]

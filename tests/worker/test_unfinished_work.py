"""Tests of the wait for spinning threads."""

import pytest

from snnbench.worker import unfinished_work

MS = 1_000_000


class SimulatedProcess:
    """A clock, and the CPU time of a process whose threads spin until `spins_until_ns`."""

    def __init__(self, spins_until_ns: int) -> None:
        self.now = 0
        self.spins_until_ns = spins_until_ns

    def cpu(self) -> int:
        return min(self.now, self.spins_until_ns)

    def clock(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += int(seconds * 1e9)

    def settle(self) -> None:
        unfinished_work.settle(self.cpu, self.clock, self.sleep)


@pytest.mark.parametrize("spins_for_ms", [0, 1, 50, 199])
def test_settle_ends_one_slice_after_the_spinning(spins_for_ms: int) -> None:
    process = SimulatedProcess(spins_for_ms * MS)
    process.settle()
    assert process.now == spins_for_ms * MS + unfinished_work.SLICE_NS


def test_settle_gives_up_on_endless_spinning() -> None:
    process = SimulatedProcess(1_000 * MS)
    process.settle()
    assert process.now == unfinished_work.LONGEST_NS

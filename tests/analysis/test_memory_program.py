"""Tests of the program whose memory was measured: one that is far slower than the timed one is said and found."""

from snnbench.analysis import memory_program
from snnbench.analysis.results import results_by_case
from tests.fakes import CASE
from tests.recordings import timed, weighed

TIMES = [timed("a", trial, train=2.0) for trial in range(3)]


def test_slower_program_is_said() -> None:
    slow, alike, old = weighed("a"), weighed("a"), weighed("a")
    slow.memory["passes_ns"] = [50_000_000, 42_000_000]
    alike.memory["passes_ns"] = [90_000_000, 40_000_000]
    complaint = "memory is of another program: its passes take 21 times as long"
    assert list(memory_program.complaints([*TIMES, slow])) == [(slow, complaint)]
    assert not [*memory_program.complaints([*TIMES, alike, old]), *memory_program.complaints([slow])]
    (result,) = results_by_case([*TIMES, slow])[CASE]
    assert result.reasons == [complaint]

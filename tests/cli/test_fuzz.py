"""A few tries of the fuzz of the command line; `python -m tests.fuzz` has many."""

from tests.fuzz.__main__ import faults

TRIES = 150


def test_no_drawn_command_line_is_a_fault_of_snnbench() -> None:
    assert list(faults(TRIES, seed=4)) == []

"""Which tests a mutant of a module runs against: those that kill most of them first, slow ones last.

Tests that start whole runs are left out. They wait for the CPUs on which others measure, and would fail for that.
"""

SUITES: dict[str, tuple[str, ...]] = {
    "verify": ("verify", "spotcheck"),
    "spotcheck": ("spotcheck", "sample", "verify"),
    "sample": ("sample", "spotcheck"),
    "coverage": ("coverage",),
    "extent": ("extent", "coverage", "spotcheck"),
    "network_check": ("network_check", "spotcheck", "sample", "verify"),
    "fresh": ("fresh",),
    "rounding": ("rounding", "rule", "verify"),
    "roofline": ("roofline",),
    "statistics": ("statistics",),
    "difference": ("difference",),
    "decision": ("decision", "compare"),
    "standing": ("standing", "rank", "report"),
    "tidy": ("tidy", "standing"),
    "rule": ("rule", "reference"),
    "reference": ("reference", "rule"),
    "exam": ("verify",),
    "compare": ("compare", "decision"),
    "comparability": ("comparability", "compare"),
    "looks": ("looks",),
    "abtest": ("abtest",),
    "rank": ("rank", "decision"),
    "pairs": ("pairs", "decision", "rank"),
    "judge": ("judge",),
    "record": ("record", "attempts"),
    "writer": ("record", "merge_by_hand"),
    "merge": ("merge_by_hand", "attempts"),
    "selection": ("selection",),
    "memory": ("memory",),
    "contention": ("contention",),
    "attempts": ("attempts",),
    "verdicts": ("verdicts",),
    "timing": ("timing",),
    "checking/__init__": ("checking",),
    "checking/cell": ("checking_cell", "checking"),
    "checking/files": ("checking", "attempts"),
    "checking/trials": ("checking",),
}
"""Module under snnbench/ -> names of files tests/test_NAME.py."""

WEIGHTS = {
    **dict.fromkeys(("verify", "spotcheck", "rounding", "roofline", "statistics", "difference", "decision"), 2),
    **dict.fromkeys(("rank", "pairs", "checking/__init__", "checking/cell", "checking/files", "checking/trials"), 2),
}
"""How many mutants a module gets for one of another module of its length, where not as many."""

LEFT_OUT = (
    "test_attempts.py::test_a_killed_run_goes_on_with_the_attempts_that_are_left",
    "test_attempts.py::test_a_run_whose_machine_is_never_quiet_ends_and_says_so",
    "test_attempts.py::test_an_attempt_that_is_incorrect_decides_the_cell_and_is_the_last",
    "test_attempts.py::test_an_interrupted_attempt_is_tried_again_under_its_number",
    "test_attempts.py::test_cells_side_by_side_are_measured_again_on_their_cards",
    "test_attempts.py::test_disturbed_cells_run_again_in_rounds_after_the_plan",
    "test_attempts.py::test_memory_and_verification_are_not_measured_again",
    "test_attempts.py::test_the_protocol_says_how_often",
    "test_timing.py::test_work_that_lands_when_synchronised_is_timed_in_full",
)
"""Tests that start runs, and one that a busy machine fails; with all of their parameters."""

"""Which tests a mutant of a module runs against: those that kill most of them first, slow ones last.

Tests that start whole runs are left out. They wait for the CPUs on which others measure, and would fail for that.
"""

SUITES: dict[str, tuple[str, ...]] = {
    "proof/comparison": ("verify", "spotcheck"),
    "proof/spotcheck": ("spotcheck", "sample", "verify"),
    "proof/sample": ("sample", "spotcheck"),
    "analysis/coverage": ("coverage",),
    "proof/extent": ("extent", "coverage", "spotcheck"),
    "proof/network_check": ("network_check", "spotcheck", "sample", "verify"),
    "proof/fresh": ("fresh",),
    "proof/tolerance": ("rounding", "rule", "verify"),
    "worker/floor": ("roofline",),
    "analysis/bootstrap": ("statistics",),
    "analysis/difference": ("difference",),
    "analysis/decision": ("decision", "compare"),
    "analysis/results": ("standing", "rank", "report"),
    "report/tidy": ("tidy", "standing"),
    "workloads/rule": ("rule", "reference"),
    "workloads/reference": ("reference", "rule"),
    "proof/exam": ("verify",),
    "analysis/compare": ("compare", "decision"),
    "analysis/comparability": ("comparability", "compare"),
    "analysis/looks": ("looks",),
    "analysis/abtest": ("abtest",),
    "analysis/rank": ("rank", "decision"),
    "analysis/pairs": ("pairs", "decision", "rank"),
    "run/endings": ("judge",),
    "recording/record": ("record", "attempts"),
    "recording/writer": ("record", "merge_by_hand"),
    "recording/merge": ("merge_by_hand", "attempts"),
    "plan/selection": ("selection",),
    "worker/memory": ("memory",),
    "worker/contention": ("contention",),
    "recording/attempts": ("attempts",),
    "report/text/verdict_table": ("verdicts",),
    "worker/timing": ("timing",),
    "checking/__init__": ("checking",),
    "checking/records": ("checking_cell", "checking"),
    "checking/files": ("checking", "attempts"),
    "checking/trials": ("checking",),
}
"""Path of a module under snnbench/ -> names of files tests/test_NAME.py."""

WEIGHTS = dict.fromkeys(
    (
        "proof/comparison",
        "proof/spotcheck",
        "proof/tolerance",
        "worker/floor",
        "analysis/bootstrap",
        "analysis/difference",
        "analysis/decision",
        "analysis/rank",
        "analysis/pairs",
        "checking/__init__",
        "checking/records",
        "checking/files",
        "checking/trials",
    ),
    2,
)
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

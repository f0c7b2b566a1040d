"""The test suites for each module's mutants: the suites that kill most mutants first, slow suites last.

Tests that start whole runs are left out: they wait for CPUs that other runs use, and would fail for that reason.
"""

SUITES: dict[str, tuple[str, ...]] = {
    "proof/comparison": ("proof/comparison", "proof/spotcheck"),
    "proof/spotcheck": ("proof/spotcheck", "proof/sample", "proof/comparison"),
    "proof/sample": ("proof/sample", "proof/spotcheck"),
    "analysis/coverage": ("analysis/coverage",),
    "proof/extent": ("proof/extent", "analysis/coverage", "proof/spotcheck"),
    "proof/network_check": ("proof/network_check", "proof/spotcheck", "proof/sample", "proof/comparison"),
    "proof/fresh": ("proof/fresh",),
    "proof/tolerance": ("proof/tolerance", "workloads/rule", "proof/comparison"),
    "worker/floor": ("worker/floor",),
    "analysis/bootstrap": ("analysis/bootstrap",),
    "analysis/difference": ("analysis/difference",),
    "analysis/decision": ("analysis/decision", "analysis/compare"),
    "analysis/results": ("analysis/results", "analysis/rank", "report/report"),
    "report/tidy": ("report/tidy", "analysis/results"),
    "workloads/rule": ("workloads/rule", "workloads/reference"),
    "workloads/reference": ("workloads/reference", "workloads/rule"),
    "proof/exam": ("proof/comparison",),
    "analysis/cells": ("analysis/compare", "analysis/decision"),
    "analysis/compare": ("analysis/compare", "analysis/movement"),
    "analysis/comparability": ("analysis/comparability", "analysis/compare"),
    "analysis/looks": ("analysis/looks",),
    "analysis/abtest": ("analysis/abtest",),
    "analysis/trial_pairs": ("analysis/abtest",),
    "analysis/rank": ("analysis/rank", "analysis/decision"),
    "analysis/pairs": ("analysis/pairs", "analysis/decision", "analysis/rank"),
    "run/endings": ("run/endings",),
    "recording/record": ("recording/record", "recording/attempts"),
    "recording/writer": ("recording/record", "recording/merge_by_hand"),
    "recording/merge": ("recording/merge_by_hand", "recording/attempts"),
    "plan/selection": ("plan/selection",),
    "worker/memory": ("worker/memory",),
    "worker/contention": ("worker/contention",),
    "recording/attempts": ("recording/attempts",),
    "report/text/verdict_table": ("report/verdicts",),
    "worker/timing": ("worker/timing",),
    "checking/__init__": ("checking/checking",),
    "checking/records": ("checking/records", "checking/checking"),
    "checking/files": ("checking/checking", "recording/attempts"),
    "checking/trials": ("checking/checking",),
}
"""Path of a module under snnbench/ -> names of files: tests/FOLDER/test_NAME.py for FOLDER/NAME."""

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
"""A module's weight in the draw relative to a module of the same length; 1 if missing."""

LEFT_OUT = (
    "recording/test_attempts.py::test_killed_run_continues_with_the_remaining_attempts",
    "recording/test_attempts.py::test_run_on_a_busy_machine_ends_with_a_message",
    "recording/test_attempts.py::test_incorrect_attempt_decides_the_cell",
    "recording/test_attempts.py::test_interrupted_attempt_is_repeated_under_its_number",
    "recording/test_attempts.py::test_parallel_cells_are_measured_again_on_their_gpus",
    "recording/test_attempts.py::test_disturbed_cells_run_again_in_rounds_after_the_plan",
    "recording/test_attempts.py::test_memory_and_verification_are_not_measured_again",
    "recording/test_attempts.py::test_protocol_limits_the_number_of_attempts",
    "worker/test_timing.py::test_asynchronous_work_is_timed_in_full",
)
"""Tests that start runs, and one that fails on a busy machine; with all of their parameters."""

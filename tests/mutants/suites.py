"""The test suites for each module's mutants: the suites that kill most mutants first, slow suites last.

Tests that start whole runs are left out: they wait for CPUs that other runs use, and would fail for that reason.
"""

SUITES: dict[str, tuple[str, ...]] = {
    "proof/comparison": ("proof/comparison", "proof/spotcheck_answers", "proof/exam", "proof/spotcheck"),
    "proof/spotcheck": (
        *("proof/spotcheck", "proof/spotcheck_answers", "proof/distance", "proof/network_check"),
        *("proof/sample", "proof/rounding", "proof/reruns"),
    ),
    "proof/gradients": (
        *("proof/spotcheck", "proof/spotcheck_answers", "proof/sample", "proof/rounding", "proof/reruns"),
    ),
    "conformance/neuron": ("conformance/neuron", "conformance/comparison"),
    "conformance/comparison": ("conformance/comparison",),
    "proof/following": ("proof/spotcheck", "proof/jumps", "proof/spotcheck_answers", "proof/sample"),
    "proof/jumps": ("proof/jumps",),
    "proof/reruns": ("proof/reruns",),
    "proof/sample": ("proof/sample", "proof/spotcheck", "proof/distance", "proof/network_check", "proof/jumps"),
    "proof/amplification": ("proof/amplification", "proof/any_case"),
    "proof/provable": ("proof/any_case",),
    "proof/cause": ("proof/cause",),
    "proof/extent": ("proof/extent", "analysis/coverage", "proof/spotcheck"),
    "proof/network_check": ("proof/network_check", "proof/spotcheck", "proof/sample", "proof/spotcheck_answers"),
    "proof/fresh": ("proof/fresh", "release/kept_answers_in_noise"),
    "proof/tolerance": ("proof/tolerance", "proof/rounding", "proof/amplification", "proof/spotcheck_answers"),
    "worker/floor": ("worker/floor", "system/measured_floor"),
    "analysis/floors": ("analysis/floors",),
    "analysis/endings": ("analysis/endings",),
    "analysis/bootstrap": ("analysis/bootstrap",),
    "analysis/difference": ("analysis/difference", "analysis/paired_difference"),
    "analysis/decision": ("analysis/decision", "analysis/compare", "analysis/compare_disturbed"),
    "analysis/results": (
        *("analysis/results", "analysis/coverage", "analysis/rank", "analysis/rank_baseline"),
        "report/report",
    ),
    "report/tidy": ("report/tidy", "analysis/results"),
    "cases/rule": ("cases/rule", "cases/reference"),
    "cases/reference": ("cases/reference", "cases/rule"),
    "proof/exam": ("proof/exam", "proof/cause", "proof/any_case"),
    "analysis/comparisons": ("analysis/compare", "analysis/compare_disturbed", "analysis/decision"),
    "analysis/compare": ("analysis/compare", "analysis/compare_disturbed", "analysis/movement"),
    "analysis/comparability": (
        *("analysis/comparability", "analysis/compare", "analysis/compare_disturbed", "analysis/movement"),
    ),
    "analysis/looks": ("analysis/looks",),
    "analysis/abtest": ("analysis/abtest", "analysis/trial_pairs", "release/false_words"),
    "analysis/rank": ("analysis/rank", "analysis/rank_baseline", "analysis/decision", "system/shipped_recordings"),
    "analysis/pairs": (
        *("analysis/pairs", "analysis/decision", "analysis/rank", "analysis/rank_baseline"),
        "system/shipped_recordings",
    ),
    "run/endings": ("run/endings",),
    "recording/record": ("recording/record", "recording/torn_lines", "recording/attempts"),
    "recording/writer": (
        *("recording/record", "recording/torn_lines", "recording/chosen_folder", "recording/merge_by_hand"),
    ),
    "recording/merge": ("recording/merge_by_hand", "recording/readers_of_attempts"),
    "plan/selection": ("plan/selection",),
    "measures/memory/worker": ("measures/memory_readings", "system/memory"),
    "worker/contention": ("worker/contention",),
    "recording/attempts": ("recording/attempts", "recording/readers_of_attempts"),
    "report/text/verdict_table": ("report/verdicts",),
    "worker/timing": ("worker/timing", "worker/fresh_passes", "release/asynchronous_work"),
    "checking/__init__": ("checking/checking", "checking/trials", "system/shipped_recordings"),
    "checking/records": (
        *("checking/proof", "checking/records", "checking/shipped_proofs", "checking/checking", "checking/schemas"),
        "system/shipped_recordings",
    ),
    "checking/files": (
        *("checking/checking", "checking/schemas", "checking/trials", "recording/readers_of_attempts"),
        "system/shipped_recordings",
    ),
    "checking/trials": ("checking/trials", "checking/checking", "system/shipped_recordings"),
}
"""Path of a module under snnbench/ -> names of files: tests/FOLDER/test_NAME.py for FOLDER/NAME."""

WEIGHTS = dict.fromkeys(
    (
        "proof/comparison",
        "proof/spotcheck",
        "proof/gradients",
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

LEFT_OUT = ("release/test_asynchronous_work.py::test_asynchronous_work_is_timed_in_full",)
"""A test that fails on a busy machine; with all of its parameters."""

"""Which tests a mutant of a module runs against: those that kill most of them first, slow ones last."""

SUITES: dict[str, tuple[str, ...]] = {
    "verify": ("verify", "spotcheck"),
    "spotcheck": ("spotcheck", "sample", "verify"),
    "sample": ("sample", "spotcheck"),
    "coverage": ("coverage",),
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
    "rank": ("rank", "decision"),
    "pairs": ("pairs", "decision", "rank"),
    "judge": ("judge",),
    "record": ("record", "attempts"),
    "writer": ("record", "merge"),
    "merge": ("merge",),
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

"""The closed lists of the outcomes of a cell and of the verdicts of verification."""

from typing import Literal

FailureKind = Literal[
    "environment",
    "import",
    "incorrect",
    "recompiled",
    "oom-device",
    "oom-host",
    "timeout",
    "crash",
    "lost",
    "cancelled",
    "below-floor",
]
SkipKind = Literal["unsupported", "unavailable"]
Verdict = Literal["exact", "equivalent", "deviates", "incorrect"]

FAILURES: dict[str, str] = {
    "environment": "the library's environment could not be made",
    "import": "the adapter or its library could not be imported",
    "incorrect": "the work done was not the work asked for, so no time is kept",
    "recompiled": "something was compiled inside the timed region",
    "oom-device": "the accelerator's memory ran out",
    "oom-host": "the host's memory, or the limit set for a worker, ran out",
    "timeout": "the worker did not finish in time and was killed",
    "crash": "the worker raised an exception, or died of a signal or with an exit status",
    "lost": "the worker ended as if all were well, without a whole reply, or its node was lost (then it is run again)",
    "cancelled": "the user or a scheduler stopped it; the same command runs it again",
    "below-floor": "the time is less than this machine can need for the work",
}
DISPROVED = ("incorrect", "recompiled", "below-floor")
"""The failures that disprove a cell's work or its time; a later time does not revoke them."""
SKIPS: dict[str, str] = {
    "unsupported": "the library cannot express this case",
    "unavailable": "this machine lacks what the case needs",
}
VERDICTS: dict[str, str] = {
    "exact": "every spike and gradient is the reference's, up to the rounding of the case's own number format",
    "equivalent": "within the tolerance of a number format with fewer digits than float32",
    "deviates": "differs by a declared and measured amount; never ranked among the exact",
    "incorrect": "differs without having said so",
}

"""The outcome of a cell: measured, skipped or failed, with the closed lists of kinds and verdicts."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

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
SkipKind = Literal["unsupported", "unavailable", "unprovable"]
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
    "cancelled": "the user, a scheduler, or a full disk or the like stopped it; the same command runs it again",
    "below-floor": "the time is less than this machine can need for the work",
}
DISPROVED = ("incorrect", "recompiled", "below-floor")
"""The failures that disprove a cell's work or its time; a later time does not revoke them."""
SKIPS: dict[str, str] = {
    "unsupported": "the library cannot express this case",
    "unavailable": "this machine lacks what the case needs",
    "unprovable": "the case is too silent, too busy or too unstable to tell right work from wrong",
}
VERDICTS: dict[str, str] = {
    "exact": "every spike and gradient is the reference's, up to the rounding of the case's own number format",
    "equivalent": "within the tolerance of a number format with fewer digits than float32",
    "deviates": "differs by a declared and measured amount; never ranked among the exact",
    "incorrect": "differs without having said so",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a cell ended: measured with a verdict, or skipped or failed with a kind and a reason.

    `deviation` is the declared difference of a contender that deviates, and `own_rule` the numbers of the neuron that
    it is held to instead. `inference_only` is the reason why a contender has no gradient. `inferred_from` names the
    sizes of the cell that implies this failure. `scheduler` is the state of the job that ended the cell.

    Raises ValueError if a part is missing. The lists may have grown since another version wrote an outcome, so
    `complaint` checks them.
    """

    status: str
    verdict: str | None = None
    kind: str | None = None
    reason: str | None = None
    deviation: str | None = None
    inference_only: str | None = None
    own_rule: dict[str, Any] | None = None
    inferred_from: str | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.measured != (self.verdict is not None):
            raise ValueError("only a measured cell has a verdict")
        if not self.measured and (self.kind is None or self.reason is None):
            raise ValueError("a cell that was not measured has a kind and a reason")
        if self.verdict == "deviates" and self.deviation is None:
            raise ValueError("a contender that deviates says how")

    @property
    def measured(self) -> bool:
        """Whether the cell has measurements."""
        return self.status == "measured"

    @property
    def is_same_work(self) -> bool:
        """Whether the cell did the work of its case, so that its time is compared with others."""
        return self.verdict in ("exact", "equivalent")

    @property
    def disproved(self) -> bool:
        """Whether the cell's work or its time was disproved."""
        return self.kind in DISPROVED

    def __str__(self) -> str:
        """The outcome as shown to the user."""
        if self.measured:
            return f"measured, {self.verdict}" + (f" ({self.deviation})" if self.deviation else "")
        return f"{self.status}: {self.kind}: {self.reason}"

    def complaint(self) -> str | None:
        """One line on a status, verdict, kind or reason that no cell can have; None if there is no such error."""
        kinds = {"failed": FAILURES, "skipped": SKIPS}
        if self.measured:
            if self.verdict not in VERDICTS or self.verdict == "incorrect":
                return f"measured, with the verdict {self.verdict!r}"
        elif self.status not in kinds:
            return f"status {self.status!r} is not measured, skipped or failed"
        elif self.kind not in kinds[self.status]:
            return f"{self.status} as {self.kind!r}, an unknown kind"
        elif not self.reason:
            return f"{self.status} without a reason"
        return None

    def as_dict(self) -> dict[str, Any]:
        """As a document: the parts that it has."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def measured(
    verdict: Verdict,
    deviation: str | None = None,
    inference_only: str | None = None,
    own_rule: dict[str, Any] | None = None,
) -> Outcome:
    """The outcome of a measured cell, with the declarations of its contender."""
    return Outcome(
        status="measured",
        verdict=verdict,
        deviation=deviation or None,
        inference_only=inference_only or None,
        own_rule=own_rule,
    )


def skipped(kind: SkipKind, reason: str) -> Outcome:
    """The outcome of a cell that was not tried."""
    return Outcome(status="skipped", kind=kind, reason=reason)


def failed(kind: FailureKind, reason: str, inferred_from: str | None = None, scheduler: str | None = None) -> Outcome:
    """The outcome of a cell that failed."""
    return Outcome(status="failed", kind=kind, reason=reason, inferred_from=inferred_from, scheduler=scheduler)


def decode(document: Mapping[str, Any]) -> Outcome:
    """The outcome in a document. Raises ValueError if a part is missing, unknown or of another type."""
    for name, value in document.items():
        if name not in Outcome.__slots__:
            raise ValueError(f"an outcome has no {name}")
        if not isinstance(value, dict if name == "own_rule" else str):
            raise ValueError(f"{name} is {type(value).__name__}")
    if "status" not in document:
        raise ValueError("an outcome without a status")
    return Outcome(**document)

"""The proof of the provider: by the profiler, the kernels that a variant names are the kernels that ran."""

import re
from collections.abc import Sequence

from snnbench.adapter.refusal import Unavailable
from snnbench.backends import Session

LOOKS = 3
"""Profiler runs before a kernel counts as not run: a profiler sometimes loses kernels."""
SHOWN_NAMES, SHOWN_CHARACTERS = 6, 60
"""Kernel names in a complaint, and their length."""


def kernels_that_ran(session: Session, phases: Sequence[str], patterns: Sequence[str]) -> tuple[list[str], str | None]:
    """(the kernels that match `patterns`, a complaint about a pattern that none matches or None).

    The first pattern is for the forward pass; the others must match in a training pass only. Raises Unavailable if the
    profiler sees no kernel at all.
    """
    matching: dict[str, None] = {}
    for phase in dict.fromkeys("inference" if name == "inference" else "train" for name in phases):
        wanted = patterns if phase == "train" else patterns[:1]
        names, lacking = _look(session, phase, wanted)
        if not names:
            step = "`snnbench doctor` checks profiling"
            raise Unavailable(f"the profiler saw nothing of {phase}, so which kernel ran is unknown; {step}")
        if lacking:
            ran = ", ".join(name[:SHOWN_CHARACTERS] for name in list(names)[:SHOWN_NAMES])
            return [], f"no kernel like {lacking[0]!r} ran in {phase} on {session.provider()}; what ran: {ran}"
        matching |= {name: None for pattern in wanted for name in names if re.search(pattern, name)}
    return list(matching), None


def _look(session: Session, phase: str, patterns: Sequence[str]) -> tuple[dict[str, None], list[str]]:
    """(names of the kernels that the profiler saw in a phase, patterns that match none of them)."""
    names: dict[str, None] = {}
    lacking = list(patterns)
    for _ in range(LOOKS):
        names |= dict.fromkeys(session.ran(phase))
        lacking = [pattern for pattern in patterns if not any(re.search(pattern, name) for name in names)]
        if not lacking:
            break
    return names, lacking

"""A finding of the doctor: one thing that was looked at, its state, and the next step."""

from dataclasses import dataclass
from typing import Literal

State = Literal["well", "spoils", "unknown"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: what it is like, and what to do where it spoils measurements."""

    name: str
    state: State
    what: str
    step: str = ""

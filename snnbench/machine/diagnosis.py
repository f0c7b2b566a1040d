"""Diagnoses of the doctor: a diagnosis is the result of one check."""

from dataclasses import dataclass
from typing import Literal

State = Literal["well", "spoils", "unknown"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of one check: its state, the observation, and the next step if it spoils measurements."""

    name: str
    state: State
    what: str
    step: str = ""

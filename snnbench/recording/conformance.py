"""Recordings of `snnbench nir`: one JSON file with a row for each graph, time step and library.

The file is apart from the recordings of times, which are folders.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import snnbench
from snnbench.cases import outcome
from snnbench.cases.outcome import Outcome
from snnbench.exits import UserError
from snnbench.files import replace_file
from snnbench.recording import schema
from snnbench.recording.record import loaded

KIND = "snnbench nir"
SCHEMA = 1
"""1: first version."""


class NoConformance(UserError):
    """The file is no recording of `snnbench nir`; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A library's importer on one graph at one time step.

    `comparison` has the fields of snnbench.conformance.comparison.Comparison; it is empty if nothing was compared.
    `packages` are the installed versions.
    """

    graph: str
    dt: float
    library: str
    version: str
    outcome: Outcome
    comparison: Mapping[str, Any] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """The verdict, or the kind of a failure or skip."""
        return str(self.outcome.verdict or self.outcome.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conformance:
    """All rows of a command, the digests of the graphs' files by name, and the input.

    The input has `time_steps` T, `batch` samples B, a `seed`, a `rate` and an `amplitude` (conformance.network.Input).
    """

    rows: Sequence[Row]
    graphs: Mapping[str, str]
    time_steps: int
    batch: int
    seed: int
    rate: float | None = None
    amplitude: float = 1.0
    version: str = snnbench.__version__

    def as_dict(self) -> dict[str, Any]:
        """As a document."""
        rows = [asdict(row) | {"outcome": row.outcome.as_dict()} for row in self.rows]
        return {"kind": KIND, "schema": SCHEMA} | asdict(self) | {"rows": rows}


def write(path: Path, conformance: Conformance) -> None:
    """Write a recording. Raises OSError."""
    replace_file(path, (json.dumps(conformance.as_dict(), indent=1, allow_nan=False) + "\n").encode())


def read(path: Path) -> Conformance:
    """The recording in a file. Raises NoConformance."""
    try:
        document = loaded(path.read_text(encoding="utf-8-sig"))
        if (document.pop("kind"), document.pop("schema")) != (KIND, SCHEMA):
            raise ValueError(f"expected kind {KIND!r}, schema {SCHEMA}")
        if wrong := schema.complaint("nir", document):
            raise ValueError(wrong)
        rows = [Row(**row | {"outcome": outcome.decode(row["outcome"])}) for row in document.pop("rows")]
        for row in rows:
            if wrong := row.outcome.complaint():
                raise ValueError(f"{row.library} on {row.graph}: {wrong}")
        return Conformance(rows=rows, **document)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise NoConformance(f"{path}: no recording of snnbench nir: {error}") from error

"""The loop in plain torch as a program for the proof's tests: an honest library, in every number format."""

from pathlib import Path

from snnbench import workloads
from snnbench.adapter.loading import load
from snnbench.adapter.reading import read
from snnbench.backends.torch import Backend
from snnbench.cases.answer import Answer
from snnbench.cases.problem import Problem

PATH = Path(__file__).parent.parent.parent / "adapters" / "torch-loop.py"


def torch_loop(problem: Problem, which: int, cotangent: int | None = None) -> Answer:
    """The answer to a numbered input."""
    build = workloads.of(problem.case).builder(load(PATH))
    session = Backend(problem.case).session(build, read(PATH).variants["unbind"], problem)
    session.load(which, which if cotangent is None else cotangent)
    return session.answer(*session.train())

"""Cases drawn from the whole range of a config, honest programs in them, and programs with one small fault.

    python -m tests.drawn --count 2000          a table of verdicts by the range of each field; exits 1 at an accusation

No honest program may be accused. A fault must be found, or the case must be named as one that cannot show it.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

from snnbench import workloads
from snnbench.cases.answer import Answer
from snnbench.cases.case import PROFILES, Case
from snnbench.cases.surrogate import FORMULAS
from snnbench.proof import exam, provable
from snnbench.proof.spotcheck import SpotCheck
from snnbench.workloads import layers as layers_of_widths
from snnbench.workloads import lif, linear_lif
from tests.programs import FAULTS, FORMATS, STYLES, Array, Program

ALL_NS = 10**12
"""A budget large enough to compare everything."""
Run = Callable[..., Answer]
"""(problem, number of the input, number of the cotangent) -> answer."""
TRAINED = ("beta", "threshold", "beta-threshold")
HONEST: dict[str, Run] = {style: Program(style) for style in STYLES}
VISIBLE = 10.0
"""A fault shows if it moves the gradient by so many times what rounding moves it in an honest program."""
RANGES: dict[str, tuple[float, ...]] = {
    "slope": (0.1, 1, 5, 25, 100, 200),
    "threshold": (0.01, 0.1, 1, 10, 100),
    "beta": (0, 0.5, 0.9, 0.99, 0.999, 1),
    "time_steps": (1, 10, 100, 500, 2000),
}
"""The bounds by which the table divides a field's values."""


def drawn(seed: int, **fixed: Any) -> Case:
    """A case from the whole range that a config allows, small enough for a program in NumPy."""
    random = np.random.default_rng(seed)

    def log(low: float, high: float) -> float:
        return float(np.exp(random.uniform(math.log(low), math.log(high))))

    reset, detach = list(PROFILES.values())[random.integers(len(PROFILES))]
    betas = (0.0, 1.0, 0.9, float(random.uniform()), 1 - log(1e-4, 0.5))
    changes: dict[str, Any] = {
        "time_steps": round(log(1, 2000)),
        "batch": int(random.integers(1, 9)),
        "neurons": int(random.integers(1, 65)),
        **{"device": "cpu", "precision": "ieee", "threads": 1},
        "dtype": FORMATS[random.choice(len(FORMATS), p=[0.5, 0.1, 0.2, 0.2])],
        "beta": betas[random.choice(len(betas), p=[0.05, 0.1, 0.15, 0.4, 0.3])],
        "threshold": log(0.01, 100),
        **{"reset": reset, "detach_reset": detach},
        "surrogate": list(FORMULAS)[random.integers(len(FORMULAS))],
        "slope": log(0.1, 200),
        "seed": seed,
    }
    if random.random() < 0.3:
        return replace(lif.Case(**changes), **fixed)
    entering = {"input_rate": log(0.02, 1), "input_kind": ("spikes", "gaussian")[random.integers(2)]}
    layers = 2 if changes["dtype"] == "float32" and random.random() < 0.2 else 1
    if layers == 1 and random.random() < 0.3:
        changes |= {"widths": f"{random.integers(1, 65)}-{changes.pop('neurons')}", "input_gradient": True}
        changes |= {"trained": TRAINED[random.integers(3)], "trained_each": ("layer", "neuron")[random.integers(2)]}
        return replace(layers_of_widths.Case(**changes, **entering), **fixed)
    return replace(linear_lif.Case(**changes, **entering, layers=layers, input_gradient=True), **fixed)


@dataclass
class Verdicts:
    """What became of the programs of one case. `accused` are (style, complaint), the others names of faults.

    `late` is a reason why the case proves nothing that only the answers showed.
    """

    case: Case
    hindrance: str
    late: str = ""
    programs: int = 0
    accused: list[tuple[str, str]] = field(default_factory=list)
    found_faults: list[str] = field(default_factory=list)
    hidden_faults: list[str] = field(default_factory=list)
    missed_faults: list[str] = field(default_factory=list)


def judge(case: Case, faults: tuple[str, ...] = FAULTS, honest: Mapping[str, Run] = HONEST) -> Verdicts:
    """The verdicts on honest programs and on programs with these faults."""
    verdicts = Verdicts(case, provable.hindrance(case))
    if verdicts.hindrance:
        return verdicts
    problem = workloads.of(case).Problem(case)
    for style, program in honest.items():
        complaint, verdicts.late = _verdict(case, problem, program)
        verdicts.programs += 1
        verdicts.accused += [(style, complaint)] if complaint else []
        if verdicts.late:
            return verdicts
    for fault in faults:
        complaint, late = _verdict(case, problem, Program(fault=fault))
        if complaint or late:  # either way it gets no time
            verdicts.found_faults.append(fault)
        else:
            shown = verdicts.missed_faults if _is_visible(case, problem, fault) else verdicts.hidden_faults
            shown.append(fault)
    return verdicts


def _verdict(case: Case, problem: Any, program: Run) -> tuple[str, str]:
    """The complaints about a program, and why its answers prove nothing."""
    for each in workloads.of(case).exams(case):
        finding = exam.run_exam(each, lambda which, cotangent, each=each: program(each, which, cotangent))  # type: ignore[misc]
        if finding.complaints or finding.unprovable:
            return finding.message, finding.unprovable
    finding = SpotCheck(problem, 0, budget_ns=ALL_NS).check(program(problem, 0))
    return finding.message, finding.unprovable


def _is_visible(case: Case, problem: Any, fault: str) -> bool:
    """Whether a fault moves spikes, or the gradient by much more than rounding does."""
    exactly = workloads.of(case).Problem(case.with_(dtype="float64"))
    right, wrong, honest = (given(of, 0) for given, of in (
        (Program(), exactly), (Program(fault=fault), exactly), (Program(), problem)
    ))  # fmt: skip
    moved = _distance(wrong.input, right.input)
    return bool((wrong.spikes != right.spikes).any()) or moved > VISIBLE * _distance(honest.input, right.input) > 0


def _distance(got: Array | None, expected: Array | None) -> float:
    return float(np.linalg.norm(np.asarray(got) - expected))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--count", type=int, default=2000, help="how many cases (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first case (default: 0)")
    options = parser.parse_args()
    torch_loop: Run | None = None
    if find_spec("torch"):
        from tests.frameworks.torch_loop import torch_loop
    every = []
    with np.errstate(all="ignore"):
        for seed in range(options.seed, options.seed + options.count):
            case = drawn(seed)
            further = {"torch": torch_loop} if torch_loop else {}
            every.append(verdicts := judge(case, honest=HONEST | further))
            for style, complaint in verdicts.accused:
                print(f"{seed}: accused: {style}: {complaint}: {verdicts.case}", flush=True)
            for fault in verdicts.missed_faults:
                print(f"{seed}: missed: {fault}: {verdicts.case}", flush=True)
    print("\n".join(table(every)))
    sys.exit(any(verdicts.accused for verdicts in every))


def table(every: list[Verdicts]) -> Iterator[str]:
    """Markdown: the numbers of cases and verdicts, in all and in each part of a field's range."""
    yield "| cases | drawn | prove nothing | honest programs accused | faults | found | hidden by rounding | missed |"
    yield "| --- " + "| ---: " * 7 + "|"
    yield _row("all", every)
    for name, bounds in RANGES.items():
        for low, high in pairwise(bounds):
            last = high == bounds[-1]
            part = [v for v in every if low <= getattr(v.case, name) and (getattr(v.case, name) < high or last)]
            yield _row(f"`{name}` {low:g} to {high:g}", part)
    for name in ("dtype", "surrogate", "profile"):
        for value in dict.fromkeys(sorted(getattr(v.case, name) for v in every)):
            yield _row(f"`{value}`", [v for v in every if getattr(v.case, name) == value])


def _row(name: str, part: list[Verdicts]) -> str:
    kinds = ("found_faults", "hidden_faults", "missed_faults")
    counts = [sum(len(getattr(v, kind)) for v in part) for kind in kinds]
    silent = sum(bool(v.hindrance or v.late) for v in part)
    honest = f"{sum(len(v.accused) for v in part)} of {sum(v.programs for v in part)}"
    numbers = [len(part), silent, honest, sum(counts), *counts]
    return f"| {name} | {' | '.join(map(str, numbers))} |"


if __name__ == "__main__":
    main()

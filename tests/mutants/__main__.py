"""Mutation testing of the modules that trust rests on: each mutant is a small change that should make a test fail.

    python -m tests.mutants                                   420 mutants of all modules
    python -m tests.mutants --modules proof/comparison,proof/tolerance --count 80
    python -m tests.mutants --seed 2 --least 95               another draw; exits 1 below 95 %

A mutant is one edit (edits.py) of a copy of the repository in a temporary folder; the work tree is never touched. It
runs against the tests of its module and the nearest others (suites.py), until one fails. A mutant is killed if a test
fails, or if the tests take three times as long as without an edit. The score is the share of killed mutants, without
the equivalent ones (equivalent.toml). Every survivor is named by its file, its line and its edit.

The same seed draws the same mutants as long as a module is unchanged. This is not part of the test run: 420 mutants
take half an hour on one core. Existing tools do not fit. mutmut 3 edits functions only, and many margins here are
constants outside of functions. cosmic-ray edits the work tree, and runs one command for all modules.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.mutants import suites
from tests.mutants.edits import Edit, edits
from tests.mutants.suites import SUITES, WEIGHTS

ROOT = Path(__file__).parent.parent.parent
EQUIVALENT = Path(__file__).parent / "equivalent.toml"
LEFT_OUT = (".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "runs", "build", "dist")
AT_LEAST_S = 20.0
"""The shortest time limit of a test run."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit of one module."""

    module: str
    edit: Edit

    @property
    def name(self) -> str:
        """Its file, line and change."""
        return f"snnbench/{self.module}.py:{self.edit.line}: {self.edit.change}    in: {self.edit.source}"


def main() -> None:
    """Run the requested mutants. Exit with 1 if too few are killed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--modules", default=",".join(SUITES), help="comma-separated (default: all)")
    parser.add_argument("--count", type=int, default=420, help="how many mutants (default: 420)")
    parser.add_argument("--seed", type=int, default=1, help="which mutants (default: 1)")
    parser.add_argument("--least", type=float, default=95.0, help="per cent that must be killed (default: 95)")
    options = parser.parse_args()
    modules = options.modules.split(",")
    if unknown := sorted({*modules} - SUITES.keys()):
        parser.error(f"no suite for {', '.join(unknown)}; suites.py has {', '.join(SUITES)}")
    mutants, known = drawn(modules, options.count, options.seed), equivalent()
    tried = [one for one in mutants if (one.module, one.edit.source, one.edit.change) not in known]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
        survivors = list(run(copy, tried))
    score = 100 * (1 - len(survivors) / len(tried)) if tried else 100.0
    print(f"\n{len(mutants)} mutants, {len(mutants) - len(tried)} known to change nothing, {len(survivors)} survived:")
    print("\n".join(f"  {one.name}" for one in survivors))
    print(f"{score:.1f} % killed, {options.least:g} % asked for")
    sys.exit(score < options.least)


def drawn(modules: list[str], count: int, seed: int) -> list[Mutant]:
    """`count` mutants; each module's share depends on its number of edits and its weight."""
    of_module = {module: edits((ROOT / "snnbench" / f"{module}.py").read_text(encoding="utf-8")) for module in modules}
    shares = {module: WEIGHTS.get(module, 1) * len(candidates) ** 0.5 for module, candidates in of_module.items()}
    mutants = []
    for module, candidates in of_module.items():
        wanted = min(len(candidates), max(1, round(count * shares[module] / sum(shares.values()))))
        chosen = random.Random(f"{seed} {module}").sample(candidates, wanted)
        mutants += [Mutant(module, edit) for edit in sorted(chosen, key=lambda edit: (edit.start, edit.change))]
    return mutants


def equivalent() -> set[tuple[str, str, str]]:
    """(module, source, change) of the equivalent mutants."""
    content = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
    return {(one["module"], one["source"], one["change"]) for one in content["mutant"]}


def run(copy: Path, mutants: list[Mutant]) -> Iterator[Mutant]:
    """The mutants that survive. Prints the result of each mutant."""
    limits_s: dict[str, float] = {}
    for number, mutant in enumerate(mutants, 1):
        module = mutant.module
        if module not in limits_s:
            started = time.monotonic()
            if not passes(copy, SUITES[module], 3600):
                sys.exit(f"the tests of {module} fail without an edit: {' '.join(SUITES[module])}")
            limits_s[module] = max(AT_LEAST_S, 3 * (time.monotonic() - started))
        path = copy / "snnbench" / f"{module}.py"
        source = path.read_text(encoding="utf-8")
        path.write_text(mutant.edit.applied(source), encoding="utf-8")
        forget(path)
        survived = passes(copy, SUITES[module], limits_s[module])
        path.write_text(source, encoding="utf-8")
        forget(path)
        print(f"{number}/{len(mutants)} {'SURVIVED' if survived else 'killed'} {mutant.name}", flush=True)
        if survived:
            yield mutant


def forget(path: Path) -> None:
    """Drop a file's cached bytecode: Python cannot tell apart two texts of the same second and length."""
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        compiled.unlink()


def path_of(name: str) -> str:
    """`proof/test_exam.py` for the suite `proof/exam`, below tests/."""
    folder, _, stem = name.rpartition("/")
    return f"{folder}/test_{stem}.py"


def passes(copy: Path, suite: tuple[str, ...], limit_s: float) -> bool:
    """Whether all of these tests pass in time. Ends all processes that a test started."""
    paths = [f"tests/{path_of(name)}" for name in suite]
    left_out = [f"--deselect=tests/{name}" for name in suites.LEFT_OUT]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *left_out, *paths]
    environment = os.environ | {"PYTHONPATH": str(copy)}
    process = subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(limit_s) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


if __name__ == "__main__":
    main()

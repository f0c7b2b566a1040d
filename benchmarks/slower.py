"""A check that `snnbench ab` finds an adapter that was slowed on purpose, and no other.

    python -m benchmarks slower SHARE [--library torch-loop] [--profile subtract] [--runs 10] [--load] [--set KEY=VALUE]
    python -m benchmarks slower PIN --library LIBRARY [...]

Copies a library's adapter, adds a wait of SHARE of the pass's own time to its forward pass, and runs `snnbench ab
--config quick --new COPY` --runs times. With a PIN such as snntorch==1.0.0 both sides have that release, and the word
slower or faster is false. The same holds if SHARE is 0. With --load another process takes a CPU for 20 s, leaves it for
20 s, and so on. Prints the words of each run, and how often each phase gets each word.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.outcome import show
from snnbench.adapter.discovery import discover

WAIT = '''

_stack = globals().get("build") or (lambda case, weights, variant: neuron(case, variant).stack(weights))


def build(case, weights, variant):
    """The network, with a wait in each forward pass."""
    import dataclasses
    import time

    network = _stack(case, weights, variant)
    forward = network.forward

    def slower(*inputs):
        started = time.perf_counter_ns()
        outputs = forward(*inputs)
        until = time.perf_counter_ns()
        until += {share} * (until - started)
        while time.perf_counter_ns() < until:
            pass
        return outputs

    return dataclasses.replace(network, forward=slower)
'''
LOAD = """
import time
while True:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        pass
    time.sleep(20)
"""


def main() -> int:
    """Do all runs, print a line for each, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("change", metavar="SHARE|PIN")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--library", default="torch-loop")
    parser.add_argument("--profile", default="subtract")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    options = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as scratch, loaded() if options.load else unloaded():
        if "==" in options.change:
            sides = ["--base", options.change, "--new", options.change]
        else:
            sides = ["--new", str(slowed(options.library, float(options.change), Path(scratch)))]
        cells = ["--only", f"profile={options.profile}", "--set", f'sweep.libraries=["{options.library}"]']
        for setting in ("protocol.memory_trials=0", *options.settings):
            cells += ["--set", setting]
        for run in range(options.runs):
            words, trials, lines = compare(Path(scratch) / str(run), [*sides, *cells])
            counts.update(words.items())
            print(f"run {run + 1}: {trials} trials a side; {lines}", file=sys.stderr, flush=True)
    rows = [(f"{phase} {word}", str(count)) for (phase, word), count in sorted(counts.items())]
    show(f"Words of {options.runs} A/B tests of {options.library}, {options.change}", ("word", "tests"), rows)
    return 0


def slowed(library: str, share: float, folder: Path) -> Path:
    """A copy of a library's adapter in the folder. Each of its forward passes takes that share longer."""
    source = discover()[library].path
    copy = folder / source.name
    copy.write_text(source.read_text() + WAIT.format(share=share))
    return copy


def compare(folder: Path, options: list[str]) -> tuple[dict[str, str], int, str]:
    """Each phase's word, the number of trials a side, and each phase's word with its ratio and reason."""
    command = [sys.executable, "-m", "snnbench", "ab", "--config", "quick", "--format", "json", "-o", str(folder)]
    command += options
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    cells = json.loads(done.stdout)["cells"]
    records = (folder / "records.jsonl").read_text().count("\n")
    lines = (f"{cell['phase']} {cell['word']} {cell['ratio']:.3f} {cell['reason']}".strip() for cell in cells)
    return {cell["phase"]: cell["word"] for cell in cells}, records // 2, ", ".join(lines)


@contextmanager
def loaded() -> Iterator[None]:
    """Run a load that comes and goes."""
    load = subprocess.Popen([sys.executable, "-c", LOAD])
    try:
        yield
    finally:
        load.kill()
        load.wait()


@contextmanager
def unloaded() -> Iterator[None]:
    """Run no load."""
    yield

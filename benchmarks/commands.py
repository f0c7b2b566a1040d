"""How long `compare`, `rank` and `report` take for recordings of 10,000 records, each in its own process.

    python -m benchmarks commands [--cells 10000]

The numbers are made up (synthetic.py). Exits with 1 if a comparison takes longer than 5 s.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import synthetic
from benchmarks.outcome import show

LIMIT_S = 5.0
"""Time limit of a comparison of 10,000 records a side."""
COMMANDS = {"compare": 2, "compare --explain": 2, "rank": 1, "report": 1}
"""The number of recordings that each command reads."""


def main() -> int:
    """Time the commands. Returns 1 if a comparison exceeds its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=10_000)
    cells = parser.parse_args().cells
    with tempfile.TemporaryDirectory() as folder:
        base, new = Path(folder, "base"), Path(folder, "new")
        synthetic.write(base, cells, seed=0)
        synthetic.write(new, cells, seed=1, slower=0.1)
        took_s = {}
        for name, recordings in COMMANDS.items():
            command = [sys.executable, "-m", "snnbench", *name.split(), *map(str, (base, new)[:recordings])]
            started = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            took_s[name] = time.perf_counter() - started
    rows = [(f"`{name}`", str(COMMANDS[name]), f"{seconds:.2f}") for name, seconds in took_s.items()]
    show(f"Commands on recordings of {cells:,} records", ("command", "recordings", "s"), rows)
    return int(took_s["compare"] > LIMIT_S)

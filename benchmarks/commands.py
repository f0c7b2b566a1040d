"""Wall time of `compare` and `report` for recordings of many cells, with made-up numbers, each in its own process.

    python benchmarks/comparison.py [--cells 10000]

On 2 CPUs of an AMD EPYC, with 10,000 records of 39 MB a side (6,250 cells of `compare`): compare 2.9 s (4.8 s beside
two busy processes), with --explain 6 s, rank of one 3.4 s, report of one 2.1 s.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from synthetic import write

LIMIT_S = 5.0
"""Time limit of a comparison of 10,000 records a side."""


def main() -> int:
    """Time the commands. Returns 1 if a comparison exceeds its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=10_000)
    cells = parser.parse_args().cells
    with tempfile.TemporaryDirectory() as folder:
        base, new = Path(folder, "base"), Path(folder, "new")
        write(base, cells, seed=0)
        write(new, cells, seed=1, slower=0.1)
        took_s = {}
        for name, recordings in (("compare", 2), ("compare --explain", 2), ("rank", 1), ("report", 1)):
            command = [sys.executable, "-m", "snnbench", *name.split(), *map(str, (base, new)[:recordings])]
            started = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            took_s[name] = time.perf_counter() - started
            print(f"{name:20} {took_s[name]:6.2f} s", flush=True)
    return int(took_s["compare"] > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())

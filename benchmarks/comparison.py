"""How long `compare` and `report` take for recordings of many cells. Made-up numbers; whole processes; wall time.

    python benchmarks/comparison.py [--cells 10000]

On 2 CPUs of an AMD EPYC, with 10,000 records a side (6,250 cells of `compare`): compare 3.6 s, of which reading is half.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from synthetic import write

LIMIT_S = 5.0
"""What a comparison of 10,000 records a side may take."""


def main() -> int:
    """Time the commands; 1 if a comparison took longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=10_000)
    cells = parser.parse_args().cells
    with tempfile.TemporaryDirectory() as folder:
        base, new = Path(folder, "base"), Path(folder, "new")
        write(base, cells, seed=0)
        write(new, cells, seed=1, slower=0.1)
        took_s = {}
        for arguments in (
            ["compare", base, new],
            ["compare", base, new, "--explain"],
            ["rank", base],
            ["report", base],
        ):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-m", "snnbench", *arguments], check=True, stdout=subprocess.DEVNULL)
            name = " ".join(str(one) for one in arguments if not isinstance(one, Path))
            took_s[name] = time.perf_counter() - started
            print(f"{name:20} {took_s[name]:6.2f} s", flush=True)
    return int(took_s["compare"] > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())

"""How long the page of a large recording takes, and how large it is.

    python benchmarks/report.py [--cells 10000]

Ends with 1 where it takes longer or is larger than a reader should have to wait for.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import synthetic

LIMIT_S, LIMIT_BYTES = 20.0, 3_000_000


def main() -> int:
    """Make a recording, then the page as a user would."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        recording, page = Path(folder, "recording"), Path(folder, "page.html")
        synthetic.write(recording, given.cells)
        start = time.perf_counter()
        arguments = ["report", str(recording), "--format", "html", "-o", str(page)]
        subprocess.run([sys.executable, "-m", "snnbench", *arguments], check=True)
        taken_s, size_bytes = time.perf_counter() - start, page.stat().st_size
    print(f"{given.cells} cells: {taken_s:.1f} s of {LIMIT_S:g}, {size_bytes:,} bytes of {LIMIT_BYTES:,}")
    return int(taken_s > LIMIT_S or size_bytes > LIMIT_BYTES)


if __name__ == "__main__":
    sys.exit(main())

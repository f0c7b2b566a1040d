"""How long the page of a large recording takes, and how large it is.

    python -m benchmarks page [--cells 10000]

Exits with 1 if it takes longer than 20 s or is larger than 3 MB, so that a reader would have to wait.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import synthetic
from benchmarks.outcome import show

LIMIT_S, LIMIT_BYTES = 20.0, 3_000_000


def main() -> int:
    """Make a recording, then the page as a user would."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=10_000)
    cells = parser.parse_args().cells
    with tempfile.TemporaryDirectory() as folder:
        recording, page = Path(folder, "recording"), Path(folder, "page.html")
        synthetic.write(recording, cells)
        start = time.perf_counter()
        arguments = ["report", str(recording), "--format", "html", "-o", str(page)]
        subprocess.run([sys.executable, "-m", "snnbench", *arguments], check=True, stdout=subprocess.DEVNULL)
        taken_s, size_bytes = time.perf_counter() - start, page.stat().st_size
    rows = [
        ("time", f"{taken_s:.1f} s", f"{LIMIT_S:g} s"),
        ("size", f"{size_bytes / 1e6:.2f} MB", f"{LIMIT_BYTES / 1e6:g} MB"),
    ]
    show(f"The page of a recording of {cells:,} records", ("what", "measured", "limit"), rows)
    return int(taken_s > LIMIT_S or size_bytes > LIMIT_BYTES)

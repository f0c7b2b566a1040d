"""What the harness costs, in one table: cells, the plan, the checks, the commands and the page.

    python -m benchmarks harness

Runs the benchmarks cells, checks (N = 512 and 2048), commands and page one after the other, in processes of their own,
and takes the numbers of its table from their outcomes. Exits with 1 if one of them exceeds its limit.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.outcome import show

ROOT = Path(__file__).parent.parent
PARTS = (("cells",), ("checks", "512", "2048"), ("commands",), ("page",))


def main() -> int:
    """Run every part, and show one table."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    rows, status = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, *arguments in PARTS:
            path = Path(folder, f"{name}.json")
            command = [sys.executable, "-m", "benchmarks", name, *arguments, "--json", str(path)]
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL)
            status = max(status, done.returncode)
            rows += [row for table in json.loads(path.read_text())["tables"] for row in costs(name, table)]
    show("What the harness costs", ("what", "measured", "limit"), rows)
    return status


def costs(name: str, table: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The rows of a part's table, as rows of the one table."""
    match name:
        case "checks":
            return [
                (f"all checks of a timing process, N = {neurons}", f"{spot} s", "-")
                for neurons, spot, *_ in table["rows"]
            ]
        case "commands":
            return [
                (f"{command}, {table['title'].partition(' of ')[2]}", f"{seconds} s", "-")
                for command, _, seconds in table["rows"]
            ]
    return [
        (what if name == "cells" else f"{table['title']}: {what}", measured, limit)
        for what, measured, limit in table["rows"]
    ]

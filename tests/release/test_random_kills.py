"""Test of a run that is killed at random times: no measurement is lost, and none is made twice."""

import subprocess
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from snnbench import checking
from snnbench.recording.reading import RECORDS, read
from snnbench.recording.record import parse
from tests.fakes import CORRECT, write
from tests.processes import alive, noted, within
from tests.sweep import command, run_arguments, snnbench, surroundings, write_config

pytestmark = pytest.mark.quiet

NOTING = """
with (Path(__file__).parent / "pids").open("a") as file:
    file.write(f"{os.getpid()}\\n")
"""


def test_random_kills_lose_and_duplicate_no_cell(tmp_path: Path) -> None:
    """kill -9 of the harness in a sweep of 30 cells; after the last rerun every cell is there, once."""
    random = Random(0)
    noting = f"import os\nfrom pathlib import Path\n{NOTING}{CORRECT}"
    config = write_config(tmp_path, ["fast"], trials=3, memory_trials=0, neurons=list(range(16, 26)))
    arguments = run_arguments(config, [write(tmp_path, noting, "fast")], "-o", "recording")
    records = tmp_path / "recording" / RECORDS

    def killed_after(wait: Callable[[], object]) -> int:
        """The number of records of a run that is killed after this wait."""
        process = subprocess.Popen(
            command(*arguments),
            cwd=tmp_path,
            env=surroundings(tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait()
        process.kill()
        process.wait()
        return len(read(records.parent).records) if records.exists() else 0

    started = time.monotonic()
    held = [killed_after(lambda: within(20, lambda: records.exists() and records.stat().st_size > 0))]
    longest_s = 2 * (time.monotonic() - started)
    held += [killed_after(lambda: time.sleep(random.uniform(0.1, longest_s))) for _ in range(9)]
    assert held == sorted(held), "nothing that was there is lost"
    assert any(before < after < 30 for before, after in pairwise(held)), "the kills came in the middle of the run"
    done = snnbench(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    recording = read(tmp_path / "recording")
    assert Counter((one.case.neurons, one.trial) for one in recording.records) == Counter(
        (neurons, trial) for neurons in range(16, 26) for trial in range(3)
    )
    lines = (tmp_path / "recording" / RECORDS).read_text().splitlines()
    whole = [one.cell for line in lines if (one := parse(line, tmp_path))]
    assert len(whole) == len(set(whole)) == 30 and len(lines) - 30 == recording.torn, "a torn line is not a record"
    assert {one.status for one in recording.records} == {"measured"}
    assert [one for one in checking.check(tmp_path / "recording") if "lines are no records" not in one.text] == []
    assert within(5, lambda: not [pid for pid in noted(tmp_path / "pids") if alive(pid)])

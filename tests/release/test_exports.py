"""Tests of the exports of a committed recording with the real pyperf and asv, in an environment of their own."""

import json
import subprocess
from pathlib import Path

import pytest

from snnbench.adapter import reading as adapters
from snnbench.environments import store
from snnbench.recording import reading
from snnbench.report import exports
from tests.shipped import QUICK, RESULTS
from tests.sweep import snnbench

pytestmark = pytest.mark.libraries

ROOT = Path(__file__).parents[2]
RECORDING = RESULTS / QUICK
SCRIPT = ROOT / "tests" / "export_tools.py"
HEADER = """\
# /// script
# requires-python = ">=3.11"
# dependencies = ["pyperf==2.11.0", "asv==0.6.6"]
# ///
"""
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_pyperf_and_asv_read_the_medians(tmp_path: Path) -> None:
    adapter = tmp_path / "tools.py"
    adapter.write_text(f'{HEADER}"""pyperf and asv."""\nBACKEND = "numpy"\ndef neuron(case, variant): ...\n')
    declared = adapters.read(adapter)
    python = store.sync(store.plan(declared, declared.default, cuda=False), print).python
    machine = tmp_path / "machine"
    machine.mkdir()
    files = tmp_path / "pyperf.json", machine / f"{COMMIT[:8]}-snnbench.json"
    for path, *form in zip(files, ("pyperf", "asv"), ([], ["--commit", COMMIT]), strict=True):
        done = snnbench(tmp_path, "export", RECORDING, "--to", form[0], *form[1], "-o", path)
        assert done.returncode == 0, done.stderr
    printed = subprocess.run([python, SCRIPT, *files], capture_output=True, text=True, check=True).stdout
    seen = json.loads(printed)
    every = exports.measured(reading.read(RECORDING))
    times = [each for each in every if each.is_time]
    assert seen["commit"] == COMMIT and seen["pyperf"].keys() == {each.name for each in times}
    assert seen["asv"].keys() == {each.name for each in every}
    for each in times:
        runs, median, unit = seen["pyperf"][each.name]
        assert runs == len(each.repetitions) and unit == "second"
        low, high = min(map(min, each.repetitions)), max(map(max, each.repetitions))
        assert low <= 1e9 * median <= high
        (value,), (stats,) = seen["asv"][each.name]
        assert value == pytest.approx(each.summary.median / 1e9)
        assert (stats["q_25"], stats["q_75"]) == pytest.approx((each.summary.low / 1e9, each.summary.high / 1e9))


def test_asv_needs_a_commit_and_others_take_none(tmp_path: Path) -> None:
    for words in (["--to", "asv"], ["--to", "bmf", "--commit", "abc"]):
        done = snnbench(tmp_path, "export", RECORDING, *words)
        assert done.returncode == 2 and "asv needs the commit" in done.stderr

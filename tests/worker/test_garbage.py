"""Tests of garbage collection in a worker: rare while it prepares, and Python's usual one while it measures."""

import subprocess
import sys
from pathlib import Path

import pytest

from snnbench.worker import garbage
from snnbench.worker.messages import Measure
from tests.fakes import MEASURED, altered, ask, request

COLLECTING = """
import gc
print("import", gc.get_threshold())
""" + altered(f"""
    import gc
    print("work" if {MEASURED} else "exam", gc.get_threshold())
    return right
    """).lstrip()


@pytest.mark.parametrize("measure", ["time", "memory", "verify"])
def test_garbage_is_collected_as_usual_during_measurements(tmp_path: Path, measure: Measure) -> None:
    plain = [sys.executable, "-c", "import gc; print(gc.get_threshold())"]
    usual = subprocess.run(plain, capture_output=True, text=True, check=True).stdout.strip()
    assert usual != str(garbage.RARE)
    log = ask(tmp_path, COLLECTING, request(measure)).log
    printed = {line for line in log.splitlines() if line.startswith(("import", "exam", "work"))}
    at_work = garbage.RARE if measure == "verify" else usual
    assert printed == {f"import {garbage.RARE}", f"exam {garbage.RARE}", f"work {at_work}"}

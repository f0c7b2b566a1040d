"""Tests of the options --retry and --fresh: a run repeats its failed cells, or starts a new recording."""

import json
from pathlib import Path

from snnbench import checking
from snnbench.recording.reading import CONFIG
from tests.fakes import CORRECT, write
from tests.sweep import lines, recordings, run_arguments, snnbench, write_config

FLAKY = f"""
from pathlib import Path

if not Path(__file__).with_suffix(".well").exists():
    raise ValueError("unwell")
{CORRECT}
"""


def test_failed_cells_are_retried_with_retry(tmp_path: Path) -> None:
    adapters = [write(tmp_path, CORRECT, "good"), write(tmp_path, FLAKY, "flaky")]
    arguments = run_arguments(write_config(tmp_path, ["good", "flaky"], trials=1, memory_trials=0), adapters)
    assert snnbench(tmp_path, *arguments).returncode == 5
    (folder,) = recordings(tmp_path)
    (tmp_path / "flaky.well").touch()
    done = snnbench(tmp_path, *arguments, "--retry", "timeout,import")
    assert done.returncode == 0, done.stderr
    assert recordings(tmp_path) == [folder], "the same recording, though it was finished"
    assert [line["outcome"]["status"] for line in lines(folder)].count("measured") == 2
    assert len(lines(folder)) == 3 and checking.check(folder) == []
    done = snnbench(tmp_path, *arguments, "--retry", "imports")
    assert done.returncode == 2 and "did you mean 'import'" in done.stderr


def test_fresh_run_starts_a_new_recording(tmp_path: Path) -> None:
    arguments = run_arguments(
        write_config(tmp_path, ["good"], trials=1, memory_trials=0), [write(tmp_path, CORRECT, "good")]
    )
    assert snnbench(tmp_path, *arguments).returncode == 0
    (folder,) = recordings(tmp_path)
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(config | {"finished": False}))
    assert snnbench(tmp_path, *arguments, "--fresh").returncode == 0
    assert len(recordings(tmp_path)) == 2
    done = snnbench(tmp_path, *arguments, "--fresh", "-o", str(folder))
    assert done.returncode == 1 and "name another folder" in done.stderr

"""Tests of the real github-action-benchmark on exports of a committed recording.

    GITHUB_ACTION_BENCHMARK=FOLDER pytest tests/release/test_history_action.py

FOLDER is a checkout of benchmark-action/github-action-benchmark, release 1.22, after
`npm ci --ignore-scripts && npx tsc -p tsconfig.build.json`. The tests need Node.js, and no network.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from snnbench.recording import reading
from snnbench.report import exports
from tests.shipped import QUICK, RESULTS

ACTION = Path(os.environ.get("GITHUB_ACTION_BENCHMARK", "/absent")) / "dist" / "src" / "index.js"

pytestmark = pytest.mark.skipif(
    not (ACTION.is_file() and shutil.which("node")),
    reason="GITHUB_ACTION_BENCHMARK names no built github-action-benchmark",
)
NAME = "snnbench"
INPUTS = {
    "name": NAME,
    "tool": "customSmallerIsBetter",
    "gh-pages-branch": "gh-pages",
    "benchmark-data-dir-path": "dev/bench",
    "alert-threshold": "130%",
    "fail-on-alert": "true",
}
SWITCHES = [
    "auto-push",
    "comment-always",
    "comment-on-alert",
    "go-force-package-suffix",
    "skip-fetch-gh-pages",
    "summary-always",
]
Entry = dict[str, str | float]


def entries() -> list[Entry]:
    return json.loads(exports.github_action_benchmark(reading.read(RESULTS / QUICK)))


def act(folder: Path, commit: str, measured: list[Entry]) -> subprocess.CompletedProcess[str]:
    """Run the action on these entries, in a job for a push of `commit`; its history is history.json."""
    person = {"name": "A", "username": "a", "email": "a@example.org"}
    head = {
        "id": commit,
        "message": commit,
        "timestamp": "2026-11-26T00:00:00Z",
        "url": f"https://example.org/{commit}",
    }
    event = {
        "head_commit": head | {"author": person, "committer": person},
        "repository": {"name": "b", "owner": {"login": "a"}, "full_name": "a/b", "html_url": "https://example.org/a/b"},
    }
    (folder / "event.json").write_text(json.dumps(event))
    (folder / "measured.json").write_text(json.dumps(measured))
    inputs = dict.fromkeys(SWITCHES, "false") | INPUTS | {"save-data-file": "true"}
    inputs["output-file-path"] = str(folder / "measured.json")
    inputs["external-data-json-path"] = str(folder / "history.json")
    variables = {f"INPUT_{name.upper()}": value for name, value in inputs.items()}
    variables |= {
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_REPOSITORY": "a/b",
        "PATH": os.environ["PATH"],
    }
    return subprocess.run(["node", ACTION], env=variables, cwd=folder, capture_output=True, text=True, check=False)


def history(folder: Path) -> list[list[Entry]]:
    runs = json.loads((folder / "history.json").read_text())["entries"][NAME]
    return [run["benches"] for run in runs]


def test_every_median_is_in_the_history(tmp_path: Path) -> None:
    done = act(tmp_path, "1" * 40, entries())
    assert done.returncode == 0, done.stdout
    (run,) = history(tmp_path)
    recorded = [{name: each[name] for name in ("name", "value", "unit")} for each in run]
    assert recorded == [{name: each[name] for name in ("name", "value", "unit")} for each in entries()]


def test_unchanged_recording_passes_and_a_slower_one_fails(tmp_path: Path) -> None:
    assert act(tmp_path, "1" * 40, entries()).returncode == 0
    assert act(tmp_path, "2" * 40, entries()).returncode == 0
    slower = entries()
    slower[0]["value"] = 1.5 * float(slower[0]["value"])
    done = act(tmp_path, "3" * 40, slower)
    assert done.returncode != 0
    assert str(slower[0]["name"]) in done.stdout and str(slower[1]["name"]) not in done.stdout

"""Tests of action.yml: its steps, run as a runner runs them, on pull requests of a small library in a repository."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tiny_library import Repository

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
INSTALL, COMMENT = "Install snnbench", "Comment on the pull request"


@dataclass
class Runner:
    """A runner of one job: the inputs, the outputs of steps so far, and the files that a runner offers to steps."""

    folder: Path
    inputs: dict[str, str]
    outputs: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    printed: str = ""

    def value(self, text: str) -> str:
        """The text with the values of its expressions. Raises KeyError for an unknown expression."""

        def known(expression: re.Match[str]) -> str:
            name = expression[1].strip()
            if name.startswith("inputs."):
                return self.inputs[name.removeprefix("inputs.")]
            if name.startswith("steps.measure.outputs."):
                return self.outputs[name.removeprefix("steps.measure.outputs.")]
            return {"github.token": "none", "github.event.pull_request.number": "7"}[name]

        return re.sub(r"\$\{\{(.*?)\}\}", known, text)

    def run(self) -> int:
        """Run all steps that have a command, until one fails. Returns its status, or 0."""
        written = {name: self.folder / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
        for path in written.values():
            path.touch()
        for step in (step for step in STEPS if "run" in step and step["name"] not in (INSTALL, COMMENT)):
            assert step["shell"] == "bash"
            given = {name: self.value(str(value)) for name, value in step["env"].items()}
            env = {**os.environ, **given, **{name: str(path) for name, path in written.items()}}
            env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, timeout=900)
            self.printed += done.stdout + done.stderr
            self.statuses[step["name"]] = done.returncode
            lines = written["GITHUB_OUTPUT"].read_text().splitlines()
            self.outputs |= dict(line.split("=", 1) for line in lines)
            if done.returncode:
                return done.returncode
        return 0


def inputs(repository: Repository, **changes: str) -> dict[str, str]:
    """The action's inputs: their defaults, and those for the tiny library."""
    defaults = {name: str(one["default"]) for name, one in ACTION["inputs"].items() if "default" in one}
    small = "--set case.neurons=64 --set case.batch=4 --set case.time_steps=50 --set protocol.memory_trials=0"
    arguments = f'--only profile=subtract --set protocol.phases=["train"] {small} --trials 8 --allow contended'
    own = {"adapter": "benchmarks/tinylif.py", "library": "tinylif", "base": ".@base", "arguments": arguments}
    return defaults | own | changes


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """The library at `base`, and two pull requests: one with another docstring, one that takes 30 % longer."""
    return Repository(tmp_path_factory.mktemp("repository") / "tinylif")


@pytest.mark.libraries
def test_slower_pull_request_fails_and_says_so(repository: Repository) -> None:
    repository.switch("slower")
    runner = Runner(repository.folder, inputs(repository))
    assert runner.run() == 6, runner.printed
    output = repository.folder / "snnbench-results"
    comparison = (output / "comparison.md").read_text()
    assert re.search(r"\|\W*slower\W*\| tinylif \| train \| time \|", comparison), comparison
    assert (repository.folder / "GITHUB_STEP_SUMMARY").read_text() == comparison
    assert "<html" in (output / "page.html").read_text() and "<testsuite" in (output / "ab.xml").read_text()
    assert runner.statuses["Make a page, and a file for services that show tests"] == 0, "also if head is slower"


@pytest.mark.libraries
def test_unchanged_pull_request_passes(repository: Repository) -> None:
    repository.switch("same")
    runner = Runner(repository.folder, inputs(repository, output="unchanged"))
    assert runner.run() == 0, runner.printed
    comparison = (repository.folder / "unchanged" / "comparison.md").read_text()
    assert "tinylif" in comparison and not re.search(r"\|\W*(slower|failed)\W*\|", comparison), comparison


def test_unknown_base_fails_with_one_line(repository: Repository) -> None:
    repository.switch("same")
    runner = Runner(repository.folder, inputs(repository, base=".@absent", output="absent"))
    assert runner.run() == 2 and "has no 'absent'" in runner.printed
    assert not (repository.folder / "absent" / "page.html").exists()


def test_inputs_are_described_and_actions_are_pinned() -> None:
    assert all(one["description"] for part in ("inputs", "outputs") for one in ACTION[part].values())
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used == ["actions/upload-artifact@v4"]
    for step in (step for step in STEPS if "run" in step):
        assert "${{" not in step["run"], "values reach a command as variables, so none can become code"

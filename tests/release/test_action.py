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
GH = """#!/bin/sh
[ -z "$REFUSES" ] || { echo "GraphQL: Resource not accessible by integration" >&2; exit 1; }
printf '%s\\n' "$GH_TOKEN" "$@" > "$GITHUB_WORKSPACE/gh-call"
for file; do :; done
cp "$file" "$GITHUB_WORKSPACE/gh-body"
"""
"""A stand-in for GitHub's command line: it keeps its arguments and the comment, or refuses as for a fork's token."""


@dataclass
class Runner:
    """A runner of one job: the inputs, the outputs of steps so far, and the files that a runner offers to steps."""

    folder: Path
    inputs: dict[str, str]
    outputs: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    printed: str = ""
    refuses: bool = False

    def value(self, text: str) -> str:
        """The text with the values of its expressions. Raises KeyError for an unknown expression."""

        def known(expression: re.Match[str]) -> str:
            name = expression[1].strip()
            if name.startswith("inputs."):
                return self.inputs[name.removeprefix("inputs.")]
            if name.startswith("steps.measure.outputs."):
                return self.outputs[name.removeprefix("steps.measure.outputs.")]
            return {"github.token": "secret", "github.event.pull_request.number": "7"}[name]

        return re.sub(r"\$\{\{(.*?)\}\}", known, text)

    def run(self) -> int:
        """Run all steps that have a command, until one fails. Returns its status, or 0."""
        written = {name: self.folder / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
        for path in written.values():
            path.touch()
        tools = self.folder / "tools"
        tools.mkdir(exist_ok=True)
        (tools / "gh").write_text(GH)
        (tools / "gh").chmod(0o755)
        left_out = {INSTALL} if self.inputs["comment"] == "true" else {INSTALL, COMMENT}
        for step in (step for step in STEPS if "run" in step and step["name"] not in left_out):
            assert step["shell"] == "bash"
            given = {name: self.value(str(value)) for name, value in step["env"].items()}
            env = {**os.environ, **given, **{name: str(path) for name, path in written.items()}}
            env |= {"GITHUB_WORKSPACE": str(self.folder), "REFUSES": "yes" if self.refuses else ""}
            env["PATH"] = f"{tools}:{Path(sys.executable).parent}:{env['PATH']}"
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, timeout=900)
            self.printed += done.stdout + done.stderr
            self.statuses[step["name"]] = done.returncode
            lines = written["GITHUB_OUTPUT"].read_text().splitlines()
            self.outputs |= dict(line.split("=", 1) for line in lines)
            if done.returncode:
                return done.returncode
        return 0


def inputs(trials: int = 8, **changes: str) -> dict[str, str]:
    """The action's inputs: their defaults, and those for the tiny library."""
    defaults = {name: str(one["default"]) for name, one in ACTION["inputs"].items() if "default" in one}
    small = "--set case.neurons=64 --set case.batch=4 --set case.time_steps=50 --set protocol.memory_trials=0"
    arguments = f'--only profile=subtract --set protocol.phases=["train"] {small} --trials {trials} --allow contended'
    own = {"adapter": "benchmarks/tinylif.py", "library": "tinylif", "base": ".@base", "arguments": arguments}
    return defaults | own | changes


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """The library at `base`, and two pull requests: one with another docstring, one that takes 30 % longer."""
    return Repository(tmp_path_factory.mktemp("repository") / "tinylif")


@pytest.mark.libraries
@pytest.mark.quiet
def test_slower_pull_request_fails_and_says_so(repository: Repository) -> None:
    repository.switch("slower")
    runner = Runner(repository.folder, inputs(trials=12))  # a quiet machine needs four
    assert runner.run() == 6, runner.printed
    output = repository.folder / "snnbench-results"
    comparison = (output / "comparison.md").read_text()
    assert re.search(r"\|\W*slower\W*\| tinylif \| train \| time \|", comparison), comparison
    assert (repository.folder / "GITHUB_STEP_SUMMARY").read_text() == comparison
    assert "<html" in (output / "page.html").read_text() and "<testsuite" in (output / "ab.xml").read_text()
    assert runner.statuses["Make a page, and a file for services that show tests"] == 0, "also if head is slower"
    call = (repository.folder / "gh-call").read_text().splitlines()
    body = "snnbench-results/comparison.md"
    assert call == ["secret", "pr", "comment", "7", "--edit-last", "--create-if-none", "--body-file", body]
    assert (repository.folder / "gh-body").read_text() == comparison


@pytest.mark.libraries
@pytest.mark.quiet
def test_unchanged_pull_request_passes(repository: Repository) -> None:
    repository.switch("same")
    runner = Runner(repository.folder, inputs(output="unchanged"))
    assert runner.run() == 0, runner.printed
    comparison = (repository.folder / "unchanged" / "comparison.md").read_text()
    assert "tinylif" in comparison and not re.search(r"\|\W*(slower|failed)\W*\|", comparison), comparison


@pytest.mark.parametrize("comment", ["true", "false"])
def test_unknown_base_fails_with_one_line(repository: Repository, comment: str) -> None:
    """If the token may not write a comment, the step warns. With `comment: false` it does not run."""
    repository.switch("same")
    runner = Runner(repository.folder, inputs(base=".@absent", output="absent", comment=comment))
    runner.refuses = True
    assert runner.run() == 2 and ("::warning::No comment was written" in runner.printed) is (comment == "true")
    assert runner.statuses.get(COMMENT, 0) == 0 and "has no 'absent'" in runner.printed
    assert not (repository.folder / "absent" / "page.html").exists()


def test_inputs_are_described_and_actions_are_pinned() -> None:
    assert all(one["description"] for part in ("inputs", "outputs") for one in ACTION[part].values())
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used == ["actions/upload-artifact@v4"]
    for step in (step for step in STEPS if "run" in step):
        assert "${{" not in step["run"], "values reach a command as variables, so none can become code"

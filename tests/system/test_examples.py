"""Tests that the command line accepts every command in the examples, with its options and words."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer import TyperException
from typer.main import get_command

from snnbench.analysis.decision import WORDS
from snnbench.cli import app
from snnbench.cli.options import config_path
from snnbench.plan import config

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / "examples" / "github-actions.yml"

FAILING = ("slower", "inconclusive", "failed", "missing", "incomparable")


def job() -> dict[str, Any]:
    """The only job of the workflow."""
    (only_job,) = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"].values()
    return dict(only_job)


def calls() -> list[list[str]]:
    """The arguments of every call of snnbench, with the job's variables put in as a shell would."""
    commands = []
    for step in job()["steps"]:
        for line in step.get("run", "").replace("\\\n", " ").splitlines():
            for name, value in job()["env"].items():  # in quotation marks a variable is one word
                line = line.replace(f'"${name}"', shlex.quote(value)).replace(f"${name}", value)
            words = shlex.split(line.partition(">>")[0])
            if words and words[0] == "snnbench":
                commands.append(words[1:])
    return commands


def parsed(words: list[str]) -> dict[str, Any]:
    """The parsed arguments of a command line. Raises TyperException if it does not accept them."""
    command: Any = get_command(app)
    while hasattr(command, "commands"):
        name, words = words[0], words[1:]
        command = command.commands[name]
    return dict(command.make_context(name, words).params)


def options(name: str) -> Iterator[dict[str, Any]]:
    """The parsed arguments of every call of one command."""
    return (parsed(words) for words in calls() if words[0] == name)


def test_every_call_is_accepted_by_the_command_line() -> None:
    assert [words[0] for words in calls()] == ["ab", "report", "compare"]
    for words in calls():
        assert parsed(words)


@pytest.mark.parametrize("wrong", [["rank"], ["compare", "a", "b", "--fail-if", "slower"], ["doctor", "--trials", "1"]])
def test_wrong_call_is_found(wrong: list[str]) -> None:
    with pytest.raises(TyperException):
        parsed(wrong)


def test_base_and_head_are_revisions_of_the_configs_library() -> None:
    (call,) = options("ab")
    assert call["base"] == [".@${{ github.event.pull_request.base.sha }}"] and call["new"] == [".@HEAD"]
    loaded = config.load(config_path(call["config"]), call["settings"], default_threads=2)
    assert (
        {name for sweep in loaded.sweeps for name in sweep.libraries}
        == {"mylif"}
        == {path.stem for path in call["adapter"]}
    )
    (checkout,) = (step for step in job()["steps"] if step.get("uses", "").startswith("actions/checkout@"))
    assert checkout["with"] == {"fetch-depth": 0}, "a shallow clone lacks the base"


def test_recording_is_compared_and_reported() -> None:
    recorded = [one["output"] for one in options("ab")]
    assert [[one["base"]] for one in options("compare")] == [recorded]
    assert [one["recordings"] for one in options("report")] == [recorded]


def test_job_fails_on_words_and_uploads_page_and_junit() -> None:
    for call in (*options("ab"), *options("compare")):
        assert set(call["fail_on"].split(",")) == {*FAILING} <= set(WORDS)
    (upload,) = (step for step in job()["steps"] if step.get("uses", "").startswith("actions/upload-artifact@"))
    files = [call["output"] for name in ("compare", "report") for call in options(name)]
    assert [file.name for file in files] == ["ab.xml", "page.html"]
    assert all(file.is_relative_to(upload["with"]["path"]) for file in files)


def test_actions_are_pinned_and_permissions_are_read_only() -> None:
    used = [step["uses"] for step in job()["steps"] if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[a-z-]+@v\d+", name) for name in used)
    assert yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["permissions"] == {"contents": "read"}

"""The examples: every command in them is one that the command line takes, with these options and these words."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer import TyperException
from typer.main import get_command

from snnbench import config
from snnbench.cli import app
from snnbench.cli.options import config_path
from snnbench.decision import WORDS

ROOT = Path(__file__).parent.parent
WORKFLOW = ROOT / "examples" / "github-actions.yml"


def job() -> dict[str, Any]:
    """The only job of the workflow."""
    (found,) = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"].values()
    return dict(found)


def calls() -> list[list[str]]:
    """The arguments of every call of snnbench, with the job's variables put in as a shell would."""
    found = []
    for step in job()["steps"]:
        for line in step.get("run", "").replace("\\\n", " ").splitlines():
            for name, value in job()["env"].items():  # in quotation marks a variable is one word
                line = line.replace(f'"${name}"', shlex.quote(value)).replace(f"${name}", value)
            words = shlex.split(line.partition(">>")[0])
            if words and words[0].endswith("bin/snnbench"):
                found.append(words[1:])
    return found


def parsed(words: list[str]) -> dict[str, Any]:
    """What the command line makes of these arguments. Raises TyperException where it does not take them."""
    command: Any = get_command(app)
    while hasattr(command, "commands"):
        name, words = words[0], words[1:]
        command = command.commands[name]
    return dict(command.make_context(name, words).params)


def options(name: str) -> Iterator[dict[str, Any]]:
    """What is asked of every call of one command."""
    return (parsed(words) for words in calls() if words[0] == name)


def test_every_call_is_one_that_the_command_line_takes() -> None:
    assert [words[0] for words in calls()] == ["doctor", "run", "run", "compare", "compare", "report"]
    for words in calls():
        assert parsed(words)


@pytest.mark.parametrize("wrong", [["run"], ["compare", "a", "b", "--fail-if", "slower"], ["doctor", "--trials", "1"]])
def test_a_call_that_it_does_not_take_is_found(wrong: list[str]) -> None:
    with pytest.raises(TyperException):
        parsed(wrong)


def test_both_sides_are_asked_for_the_same_work() -> None:
    base, head = options("run")
    assert (base.pop("output"), head.pop("output")) == (Path("results/base"), Path("results/head"))
    assert base == head
    for one in (base, *options("doctor")):
        loaded = config.load(config_path(one["config"]), one["settings"])
        assert loaded.protocol.trials == 5
    names = {
        name for sweep in config.load(config_path(base["config"]), base["settings"]).sweeps for name in sweep.libraries
    }
    assert names == {"torch-loop", "mylif"}


def test_what_was_recorded_is_what_is_compared_and_reported() -> None:
    recorded = [one["output"] for one in options("run")]
    assert [[one["base"], one["new"]] for one in options("compare")] == [recorded, recorded]
    assert [one["recordings"] for one in options("report")] == [recorded]


def test_it_fails_on_words_of_a_comparison_and_uploads_the_page_and_the_junit_file() -> None:
    (failing,) = (one for one in options("compare") if one["fail_on"])
    assert set(failing["fail_on"].split(",")) == {"slower", "failed"} <= set(WORDS)
    (upload,) = (step for step in job()["steps"] if step.get("uses", "").startswith("actions/upload-artifact@"))
    files = [failing["output"], *(one["output"] for one in options("report"))]
    assert [file.name for file in files] == ["compare.xml", "page.html"]
    assert all(file.is_relative_to(upload["with"]["path"]) for file in files)


def test_actions_are_pinned_and_the_readers_of_pull_requests_get_no_rights() -> None:
    used = [step["uses"] for step in job()["steps"] if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[a-z-]+@v\d+", name) for name in used)
    assert yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["permissions"] == {"contents": "read"}

"""Tests that the documents name every command, option, config key, kind of outcome, verdict, flag and exit code."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from typer.main import get_command

from snnbench import checking
from snnbench.analysis.comparability import ALLOWABLE
from snnbench.analysis.decision import WORDS
from snnbench.cli import app
from snnbench.cli.compare import ComparisonFormat
from snnbench.cli.options import ComparedPhase
from snnbench.cli.rank import RankingFormat
from snnbench.cli.report import Format
from snnbench.cli.request import Measured
from snnbench.environments import Env
from snnbench.exits import Exit
from snnbench.plan import config
from snnbench.recording import flags
from snnbench.workloads import outcome
from snnbench.workloads.case import PROFILES

DOCUMENTS = ("README.md", "METHODOLOGY.md", "CONTRIBUTING.md")
TEXT = "\n".join((Path(__file__).parents[2] / name).read_text(encoding="utf-8") for name in DOCUMENTS)
CODE = " ".join(re.findall(r"`+([^`]+)`+", TEXT))
"""The text in backquotes: plain English words would be found anywhere."""


def assert_in_code(kind: str, words: Iterable[str]) -> None:
    """Each of these words stands in backquotes in one of the documents."""
    missing = [word for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", CODE)]
    assert not missing, f"{kind} in none of {', '.join(DOCUMENTS)}, in backquotes: {', '.join(missing)}"


def commands(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(name, command) of every command, without groups."""
    for name, subcommand in getattr(command, "commands", {}).items():
        yield from commands(subcommand, f"{path} {name}".strip())
    if not hasattr(command, "commands"):
        yield path, command


ALL = dict(commands(get_command(app)))


def test_commands_are_found() -> None:
    assert {"run", "verify", "list", "report", "compare", "check", "request"} <= set(ALL)
    assert {"env sync", "env list", "env remove"} <= set(ALL)


def test_every_command_is_documented() -> None:
    assert_in_code("commands", (name if name.startswith("env") else f"snnbench {name}" for name in ALL))


def test_every_option_is_documented() -> None:
    every = [get_command(app), *ALL.values()]
    options = {option for one in every for given in one.params for option in given.opts if option.startswith("-")}
    assert {"--config", "-c", "--only", "--dry-run", "--splice", "--debug"} <= options
    assert_in_code("options", sorted(options))


def test_every_value_of_an_option_is_documented() -> None:
    closed = (Env, Format, Measured, ComparedPhase, ComparisonFormat, RankingFormat)
    assert_in_code("words of options", (word.value for words in closed for word in words))
    assert_in_code("facts of --allow", ALLOWABLE)


def test_every_config_key_is_documented() -> None:
    assert_in_code("sections", set(config.KEYS) - {""})
    for section, keys in config.KEYS.items():
        assert_in_code(f"keys of [{section}]" if section else "keys", keys)


def test_every_value_of_a_closed_list_is_documented() -> None:
    assert_in_code("profiles", PROFILES)
    assert_in_code("phases", get_args(config.Phase))
    for axis in ("Dtype", "Precision", "Surrogate"):
        assert_in_code(f"values of {axis.lower()}", get_args(getattr(config, axis)))


def test_every_kind_of_outcome_verdict_and_flag_is_documented() -> None:
    assert_in_code("kinds of failure", outcome.FAILURES)
    assert_in_code("kinds of skip", outcome.SKIPS)
    assert_in_code("verdicts", outcome.VERDICTS)
    assert_in_code("flags", flags.FLAGS)


def test_every_rule_of_a_recording_is_documented() -> None:
    missing = [name for name, holds in checking.RULES.items() if f"| `{name}` | {holds} |" not in TEXT]
    assert not missing, f"rules of snnbench check, as rows of a table: {', '.join(missing)}"


def test_every_word_of_a_comparison_is_documented() -> None:
    assert_in_code("words of compare", WORDS)


def test_every_exit_code_is_documented_with_its_meaning() -> None:
    missing = [code for code in Exit if not re.search(rf"\|\s*`?{int(code)}`?\s*\|\s*{re.escape(code.meaning)}", TEXT)]
    rows = ", ".join(f"| {int(code)} | {code.meaning} |" for code in missing)
    assert not missing, f"exit codes in none of {', '.join(DOCUMENTS)}, as a row of a table: {rows}"


def test_documents_name_only_existing_commands_and_options() -> None:
    every = {"snnbench", *(word for name in ALL for word in name.split())}
    named = set(re.findall(r"\bsnnbench ([a-z]+)\b", CODE))
    assert named - every == set(), "commands that do not exist"
    options = {option for one in (get_command(app), *ALL.values()) for given in one.params for option in given.opts}
    quoted = "\n".join(re.findall(r"`(?:snnbench[^`]*|-[^`]*)`", TEXT))
    documented = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", quoted))
    assert documented - options - {"--help"} == set(), "options that do not exist"

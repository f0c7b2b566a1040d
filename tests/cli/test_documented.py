"""Tests that the documents name every command, option, config key, kind of outcome, verdict, flag and exit code.

Commands and options must be in the text that people write. The lists of the reference pages are generated.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from typer.main import get_command

from snnbench import checking
from snnbench.adapter.discovery import discover
from snnbench.analysis.comparability import ALLOWABLE
from snnbench.analysis.decision import WORDS
from snnbench.cases import case, outcome
from snnbench.cli import app
from snnbench.cli.options import ComparedPhase, ComparisonFormat, TableFormat
from snnbench.cli.report import Format
from snnbench.cli.request import Measured
from snnbench.environments import Env
from snnbench.exits import Exit
from snnbench.plan import config
from snnbench.recording import flags
from snnbench.workloads import WORKLOADS
from tests.documents import DOCUMENTS, FENCE, ROOT, command_lines, fences, parse, written

OTHER_OPTIONS = {"--help", "--cpus", "--cpuset-cpus"}
"""Options that every command has, and options of Docker."""
NAMES = "README.md, CONTRIBUTING.md, docs"
OWN_TO_A_PAGE = {"controls", "family", "integral function", "level", "pair", "peaks", "roundoff", "work"}
"""Words that one page alone explains and uses."""


def in_backquotes(text: str) -> str:
    """The text in backquotes: plain English words would be found anywhere."""
    return "\n".join(re.findall(r"`+([^`]+)`+", text))


TEXT = "\n".join(map(written, DOCUMENTS))
PROSE_OF = {path: re.sub(r"<!-- made: .*?<!-- end -->", "", written(path), flags=re.DOTALL) for path in DOCUMENTS}
PROSE = "\n".join(PROSE_OF.values())
CODE = in_backquotes(TEXT)


def assert_in_code(kind: str, words: Iterable[str], code: str = CODE) -> None:
    """Each of these words stands in backquotes in one of the documents."""
    missing = [word for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", code)]
    assert not missing, f"{kind} in none of {NAMES}, in backquotes: {', '.join(missing)}"


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
    assert_in_code("commands", (f"snnbench {name}" for name in ALL), in_backquotes(PROSE))


def test_every_option_is_documented() -> None:
    every = [get_command(app), *ALL.values()]
    options = {option for one in every for given in one.params for option in given.opts if option.startswith("-")}
    assert {"--config", "-c", "--only", "--dry-run", "--splice", "--debug"} <= options
    assert_in_code("options", sorted(options), in_backquotes(PROSE))


def test_every_value_of_an_option_is_documented() -> None:
    closed = (Env, Format, Measured, ComparedPhase, ComparisonFormat, TableFormat)
    assert_in_code("words of options", (word.value for words in closed for word in words))
    assert_in_code("facts of --allow", ALLOWABLE)


def test_every_config_key_is_documented() -> None:
    every = config.keys(WORKLOADS)
    assert_in_code("sections", set(every) - {""})
    for section, keys in every.items():
        assert_in_code(f"keys of [{section}]" if section else "keys", keys)


def test_every_value_of_a_closed_list_is_documented() -> None:
    assert_in_code("workloads", WORKLOADS)
    assert_in_code("profiles", case.PROFILES)
    assert_in_code("phases", get_args(config.Phase))
    for axis in ("Dtype", "Precision", "Surrogate"):
        assert_in_code(f"values of {axis.lower()}", get_args(getattr(case, axis)))


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
    assert not missing, f"exit codes in none of {NAMES}, as a row of a table: {rows}"


def test_documents_name_only_existing_commands_and_options() -> None:
    every = {"snnbench", *(word for name in ALL for word in name.split())}
    named = set(re.findall(r"\bsnnbench ([a-z]+)\b", CODE))
    assert named - every == set(), "commands that do not exist"
    options = {option for one in (get_command(app), *ALL.values()) for given in one.params for option in given.opts}
    quoted = "\n".join(re.findall(r"`(?:snnbench[^`]*|-[^`]*)`", TEXT))
    documented = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", quoted))
    assert documented - options - OTHER_OPTIONS == set(), "options that do not exist"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_command_lines_of_documents_are_understood(path: Path) -> None:
    for arguments in command_lines(written(path)):
        try:
            parse(arguments)
        except (typer.TyperException, KeyError, SystemExit) as error:
            pytest.fail(f"snnbench {' '.join(arguments)}: {error!r}")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("snnbench list", [["list"]]),
        ("A=1 ls && .venv/bin/snnbench run --only 'neurons<=512' > x", [["run", "--only", "neurons<=512"]]),
        ("docker build -t snnbench .", []),
        ("docker run --rm snnbench:cuda list \\\n  --all", [["list", "--all"]]),
        ("snnbench request norse | python -m snnbench.worker x.py", [["request", "norse"]]),
    ],
)
def test_command_lines_are_read_from_shell_code(text: str, lines: list[list[str]]) -> None:
    assert command_lines(f"```sh\n{text}\n```") == lines


@pytest.mark.parametrize("arguments", [["rum"], ["run", "--confg", "x"], ["rank"], ["rank", "x", "--phase", "lunch"]])
def test_wrong_command_line_is_noticed(arguments: list[str]) -> None:
    with pytest.raises((typer.TyperException, KeyError)):
        parse(arguments)


def test_recordings_in_command_lines_exist() -> None:
    words = {word for path in DOCUMENTS for arguments in command_lines(written(path)) for word in arguments}
    named = {word for word in words if re.match(r"results/\d{4}-", word)}
    assert named
    assert not [name for name in named if not (ROOT / name / "records.jsonl").exists()]


def test_config_of_the_guide_is_valid(tmp_path: Path) -> None:
    (block,) = fences(written(ROOT / "docs" / "guides" / "write-a-config.md"), "toml")
    (tmp_path / "guide.toml").write_text(block)
    loaded = config.load(tmp_path / "guide.toml", default_threads=2)
    works = config.expand(loaded, discover())
    assert {work.case.neurons for work in works} == {256, 512, 1024}
    assert {work.library for work in works} == {"torch-loop", "norse"}


def test_every_word_that_a_page_defines_is_in_the_glossary_once() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ", written(ROOT / "docs" / "reference" / "glossary.md"), re.MULTILINE)
    words = [word for row in rows if row not in ("word", "---") for word in row.split(", ")]
    assert len(words) > 40 and len(words) == len(set(words))
    defined = set(re.findall(r"\b(?:[Aa]n?|[Tt]he|called) \*([a-z][a-z -]+)\*", PROSE))
    assert {"case", "cell", "trial", "look", "comparison"} <= defined
    assert defined - set(words) == OWN_TO_A_PAGE


LONG = [path for path in DOCUMENTS if len(FENCE.sub("", PROSE_OF[path]).split()) > 1500]


@pytest.mark.parametrize("path", LONG, ids=lambda path: path.stem)
def test_long_page_begins_with_what_it_says(path: Path) -> None:
    second = written(path).split("\n\n")[1]
    assert second.startswith("**In short:** ") and len(second.splitlines()) <= 4


def test_outputs_in_the_readme_are_in_a_tutorial() -> None:
    tutorials = [written(path) for path in DOCUMENTS if path.parent.name == "tutorials"]
    shown = [" ".join(text.split()) for tutorial in tutorials for text in fences(tutorial, "text")]
    outputs = fences(written(ROOT / "README.md"), "text")
    assert len(outputs) == 3
    assert not [output for output in outputs if not any(" ".join(output.split()) in text for text in shown)]

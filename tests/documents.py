"""The documents for users: their text, and the command lines and outputs in them."""

import re
import shlex
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import typer
from typer.main import get_command

from snnbench.cli import app

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"<!-- (output|screen (\d+)): ([^>]*) -->\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MADE = re.compile(r"<!-- made screen (\d+): ([^>]*) -->\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A screen of a command that verifies a library, with files that the page has its reader save."""
LIKE = re.compile(r"<!-- like: ([^>]*) -->\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A screen of a command that measures, so that its numbers and words differ from machine to machine."""
SEPARATORS = {"|", "||", "&&", ";", ">", ">>", "<"}


def hook(name: str) -> ModuleType:
    """A module that makes parts of the documentation, docs/hooks/NAME.py."""
    sys.path.insert(0, str(ROOT / "docs" / "hooks"))
    try:
        return import_module(name)
    finally:
        sys.path.pop(0)


def written(path: Path) -> str:
    """The text of a document."""
    return path.read_text(encoding="utf-8")


def fences(text: str, language: str) -> list[str]:
    """The blocks of code in this language."""
    return [code for name, code in FENCE.findall(text) if name == language]


def saved(path: Path) -> dict[str, str]:
    """The files that a page has its reader save: a block that follows, or the first one of a page that it links."""
    text, files = written(path), {}
    for match in re.finditer(r"\b[Ss]ave [^`]*? as\s+`([\w-]+\.\w+)`", text):
        linked = re.search(r"\]\(([^)#]+)", match[0])
        code = written(path.parent / linked[1]) if linked else text[match.end() :]
        files[match[1]] = next(block for language, block in FENCE.findall(code) if language in ("python", "toml"))
    for match in re.finditer(r"under the same name in another folder, here `([\w/]+)`", text):
        (change,) = fences(text, "diff")
        old, new = ("\n".join(line[1:] for line in change.splitlines() if line[0] != sign) for sign in "+-")
        assert files["mylif.py"].count(old) == 1
        files[f"{match[1]}mylif.py"] = files["mylif.py"].replace(old, new)
    for match in re.finditer(r"make a file `([\w-]+\.md)` with", text):
        (files[match[1]],) = fences(text, "markdown")
    return files


def command_lines(text: str) -> list[list[str]]:
    """The arguments of every call of snnbench in the blocks of shell code, also of calls in a container."""
    return [call for code in fences(text, "sh") for line in _lines(code) for call in calls(line)]


def _lines(code: str) -> list[str]:
    return [line for line in code.replace("\\\n", " ").splitlines() if line.strip()]


def calls(line: str) -> Iterator[list[str]]:
    """The arguments of every call of snnbench in a line of shell code."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word not in SEPARATORS:
            words.append(word)
            continue
        if (start := _start(words)) is not None:
            yield words[start:]
        words = []


def _start(words: list[str]) -> int | None:
    """The index of the first argument of snnbench in a simple command, or None for another program."""
    words = [word.rpartition("/")[2] for word in words]
    if words[:1] == ["snnbench"]:
        return 1
    if words[1:2] == ["run"] and words[0] in {"docker", "podman", "buildah", "apptainer"}:
        images = [number for number, word in enumerate(words) if re.fullmatch(r"snnbench(:cuda|\.sif)?", word)]
        return images[-1] + 1
    return None


def parse(arguments: list[str]) -> Any:
    """The values that the command line gives to its command, which does not run. Raises for a usage error."""
    command, rest = get_command(app), list(arguments)
    general = {name for given in command.params for name in given.opts}
    while rest and rest[0] in general:
        rest.pop(0)
    while hasattr(command, "commands"):
        if rest[:1] in (["--help"], []):
            return {}
        command = command.commands[rest.pop(0)]
    try:
        return command.make_context(str(command.name), rest).params
    except typer.Exit:  # --help
        return {}

"""Sides of an A/B run: a side is a list of changes to the adapters' pins.

    snntorch==0.9.1            this version in place of the pinned one; a direct reference of PEP 508 works, too
    ../snntorch@v0.9.1         this revision of a local git repository, built into an environment of its own
    norse.py                   this adapter file in place of the adapter of its name
    python=.venv/bin/python    this interpreter, with its installed packages
    OMP_NUM_THREADS=1          this environment variable, in addition to those of every worker

A side without changes runs the adapters as pinned.
"""

import ast
import configparser
import os
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import quote

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from snnbench.adapter.contender import Contender
from snnbench.adapter.declaration import Adapter
from snnbench.adapter.pins import Pins
from snnbench.adapter.reading import read
from snnbench.environments.compiler_caches import CACHES, EXTENSIONS
from snnbench.exits import Exit, UserError
from snnbench.suggestions import did_you_mean

BASE, NEW = "base", "new"
SIDES = (BASE, NEW)
FORMS = "LIBRARY==VERSION, PATH@REVISION of a git repository, FILE.py, python=PATH or VARIABLE=VALUE"
VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=([^=].*|)", re.DOTALL)


FIXED = {
    **dict.fromkeys((*CACHES, EXTENSIONS), "each timed process has an empty folder of its own for it"),
    "PYTHONPATH": "by it workers find snnbench",
    "CUDA_VISIBLE_DEVICES": "--devices chooses cards",
    "UV_*": "it is of making environments, not of running in them",
}
"""Variable, or pattern of variables, that a side cannot set -> the reason."""


class SideError(UserError):
    """A malformed change (see FORMS), or one without effect; the message says what to write."""

    code = Exit.USAGE


@dataclass(frozen=True, slots=True)
class Side:
    """The changes of a side; `texts` are the user's words. `requirements` are by canonical name of the distribution."""

    texts: tuple[str, ...] = ()
    requirements: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    python: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The side in a few words."""
        return " ".join(self.texts) or "as pinned"

    def adapters(self, adapters: Mapping[str, Adapter]) -> dict[str, Adapter]:
        """The adapters of this side: its files replace adapters of their names, and its requirements replace pins."""
        replacements = {adapter.name: adapter for adapter in self.replacements()}
        return {name: self._pinned(adapter) for name, adapter in {**adapters, **replacements}.items()}

    def replacements(self) -> list[Adapter]:
        """The adapters in the files of this side. Raises AdapterError."""
        return [read(path) for path in self.files]

    def _pinned(self, adapter: Adapter) -> Adapter:
        variants = {name: replace(one, pins=self._pins(one.pins)) for name, one in adapter.variants.items()}
        return replace(adapter, variants=variants)

    def _pins(self, pins: Pins) -> Pins:
        def changed(requirements: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(self._changed(one) for one in requirements)

        for name in self.requirements:
            tables = (tomllib.loads(f"table = {text}")["table"] for text in pins.metadata)
            described = {_distribution(table.get("name", "")) for table in tables}
            if name in {_distribution(one) for one in pins.overrides} | described:
                reason = "its adapter says by hand what it needs"
                raise SideError(f"{name}: {reason}, of the pinned version only; change a copy of the adapter, FILE.py")
        return replace(
            pins, dependencies=changed(pins.dependencies), cuda=changed(pins.cuda), built=changed(pins.built)
        )

    def _changed(self, pinned: str) -> str:
        """A pinned requirement with this side's version or address; it keeps its own extras and marker."""
        if (text := self.requirements.get(_distribution(pinned))) is None:
            return pinned
        requirement, own = Requirement(text), Requirement(pinned)
        requirement.extras |= own.extras
        requirement.marker = requirement.marker or own.marker
        return str(requirement)

    def changes(self, pins: Pins, library: str, files: Iterable[str], cuda: bool) -> bool:
        """Whether this side changes a library with these pins; `files` are the names of adapters that it replaces."""
        if self.python or self.variables or library in files:
            return True
        return bool(_pinned(pins, cuda) & self.requirements.keys())


def parse(texts: Sequence[str]) -> Side:
    """The side that these changes make up. Raises SideError."""
    side = Side()
    for text in map(str.strip, texts):
        changed, title = _with(side, text)
        side = replace(changed, texts=(*side.texts, title))
    return side


def contenders(
    sides: Iterable[Side], adapters: Mapping[str, Adapter], of: Iterable[Contender], cuda: bool
) -> list[Contender]:
    """The contenders of `of` that any side changes; all of them if no side has a change.

    With `cuda`, the pins for CUDA count, too. Raises SideError for a change that concerns no contender.
    """
    sides, of = list(sides), list(of)
    if not any(side.texts for side in sides):
        return of
    replaced = [{adapter.name for adapter in side.replacements()} for side in sides]
    every = {contender: adapters[contender[0]].variants[contender[1]].pins for contender in of}
    pinned = set().union(*(_pinned(pins, cuda) for pins in every.values()))
    libraries = {library for library, _ in of}
    for side, files in zip(sides, replaced, strict=True):
        for name in side.requirements.keys() - pinned:
            raise SideError(f"{name}: no contender of this config pins it{did_you_mean(name, sorted(pinned))}")
        for name in files - libraries:
            near = did_you_mean(name, sorted(libraries))
            raise SideError(f"a file is the adapter {name!r} by its name, which this config does not run{near}")
        for name, value in side.variables.items():
            if canonicalize_name(name) in pinned | libraries:
                raise SideError(f"{name}={value} is an environment variable; a version is {name}=={value}")
    return [
        (library, variant)
        for (library, variant), pins in every.items()
        if any(side.changes(pins, library, files, cuda) for side, files in zip(sides, replaced, strict=True))
    ]


def _with(side: Side, text: str) -> tuple[Side, str]:
    """(the side with one more change, title of the change): the text, and the commit for a revision."""
    if text.startswith("python="):
        if side.python:
            raise SideError(f"{text}: this side has another interpreter already")
        return replace(side, python=_interpreter(text.removeprefix("python="))), text
    if match := VARIABLE.fullmatch(text):
        return _setting(side, match[1], match[2]), text
    if text.endswith(".py"):
        if not Path(text).is_file():
            raise SideError(f"{text}: no such file")
        return replace(side, files=(*side.files, Path(text).absolute())), text
    for at in (place for place, character in enumerate(text) if character == "@"):
        folder = Path(os.path.expanduser(text[:at]))
        if text[:at] and folder.is_dir():
            requirement, commit = _of_revision(folder, text[at + 1 :])
            return _requiring(side, requirement), f"{text} ({commit[:12]})"
    return _requiring(side, text), text


def _setting(side: Side, name: str, value: str) -> Side:
    if name in side.variables:
        raise SideError(f"{name}={value}: this side sets {name} already")
    if reason := next((reason for pattern, reason in FIXED.items() if fnmatchcase(name, pattern)), ""):
        raise SideError(f"{name}={value}: {reason}")
    return replace(side, variables={**side.variables, name: value})


def _requiring(side: Side, text: str) -> Side:
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        raise SideError(f"cannot read the change {text!r}; write {FORMS}") from None
    exact = [one for one in requirement.specifier if one.operator in ("==", "===") and not one.version.endswith("*")]
    if not (requirement.url or exact):
        raise SideError(f"{text!r} names no version; write {requirement.name}==VERSION")
    if requirement.url and "://" not in requirement.url:
        raise SideError(
            f"{text!r}: no folder {requirement.name} here, and no address such as git+file:///PATH@REVISION"
        )
    name = canonicalize_name(requirement.name)
    if name in side.requirements:
        raise SideError(f"{text}: this side has another {name} already")
    return replace(side, requirements={**side.requirements, name: str(requirement)})


def _interpreter(text: str) -> Path:
    """The absolute path of an interpreter. Symbolic links are not resolved, for an environment's interpreter is one."""
    path = Path(os.path.abspath(os.path.expanduser(text)))
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise SideError(f"python={text}: no program here; expected an interpreter such as .venv/bin/python")
    return path


def _of_revision(folder: Path, revision: str) -> tuple[str, str]:
    """(direct reference to a commit of a local repository, commit). It names the commit, since a branch may move."""
    root = _git(folder, "rev-parse", "--show-toplevel")
    commit = _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", lacking=f"has no {revision!r}")
    inside = _git(folder, "rev-parse", "--show-prefix").rstrip("/")
    address = f"git+{Path(root).as_uri()}@{commit}" + (f"#subdirectory={quote(inside)}" if inside else "")
    files = _git(folder, "ls-tree", "--full-tree", "--name-only", f"{commit}:{inside}").splitlines()
    for file in (each for each in NAMED_IN if each in files):
        if name := _name(file, _git(folder, "show", f"{commit}:{inside and inside + '/'}{file}")):
            return f"{name} @ {address}", commit
    raise SideError(f"{folder} says no name in {', '.join(NAMED_IN)} at {revision}; write NAME @ {address}")


def _name(file: str, text: str) -> str:
    """The distribution's name in the text of a file of NAMED_IN, or ""."""
    try:
        return str(NAMED_IN[file](text) or "")
    except (ValueError, RecursionError, AttributeError, TypeError, configparser.Error, SyntaxError):
        return ""


def _in_pyproject(text: str) -> str | None:
    document: dict[str, Any] = tomllib.loads(text)
    tables = document.get("project", {}), document.get("tool", {}).get("poetry", {})
    return next((table["name"] for table in tables if "name" in table), None)


def _in_setup_cfg(text: str) -> str | None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    return parser.get("metadata", "name", fallback=None)


def _in_setup_py(text: str) -> str | None:
    """The name in `setup(name="...")`. The file is not run."""
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    given = (
        one.value
        for call in calls
        if ast.unparse(call.func).endswith("setup")
        for one in call.keywords
        if one.arg == "name"
    )
    return next((str(value.value) for value in given if isinstance(value, ast.Constant)), None)


NAMED_IN: Mapping[str, Callable[[str], str | None]] = {
    "pyproject.toml": _in_pyproject,
    "setup.cfg": _in_setup_cfg,
    "setup.py": _in_setup_py,
}
"""The files in which a distribution's name is looked for, in order -> how to read it."""


def _git(folder: Path, *arguments: str, lacking: str = "") -> str:
    """What git prints. Raises SideError, which says what the folder lacks, or else git's first and last words."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # a hook's repository
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=False, env=env)
    except FileNotFoundError:
        raise SideError(f"{folder}: a revision needs git, which is not here") from None
    if done.returncode:
        lines = [line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        words = ": ".join(dict.fromkeys([*lines[:1], *lines[-1:]])) or f"exit status {done.returncode}"
        raise SideError(f"{folder} {lacking}" if lacking else f"{folder}: git says {words}")
    return done.stdout.decode(errors="replace").strip()


def _pinned(pins: Pins, cuda: bool) -> set[str]:
    """The distributions that pins name, by canonical name."""
    return {_distribution(one) for one in (*pins.dependencies, *pins.built, *(pins.cuda if cuda else ()))}


def _distribution(requirement: str) -> str:
    """The canonical name of a requirement's distribution."""
    return canonicalize_name(re.split(r"[=<>!~\[;@ ]", requirement.strip())[0])

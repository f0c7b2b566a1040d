"""A side of an A/B run: what contenders run as there, said by changes to what their adapters pin.

snntorch==0.9.1                  this version in place of the pinned one; a direct reference of PEP 508 does, too
../snntorch@v0.9.1               this revision of a local git repository, built into an environment of its own
my_norse.py                      this adapter file in place of the one of its name
python=/opt/venv/bin/python      this interpreter, with what is installed there
OMP_NUM_THREADS=1                this environment variable, on top of what every worker gets
"""

import os
import re
import subprocess
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from snnbench.adapter import Adapter, Variant
from snnbench.contender import Contender
from snnbench.declaration import read
from snnbench.nearest import did_you_mean
from snnbench.pins import Pins

BASE, NEW = "base", "new"
SIDES = (BASE, NEW)
FORMS = "LIBRARY==VERSION, PATH@REVISION of a git repository, FILE.py, python=PATH or VARIABLE=VALUE"
VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=([^=].*|)", re.DOTALL)


class SideError(ValueError):
    """A change that is none by its form, or that changes nothing; the message says what to write."""


@dataclass(frozen=True, slots=True)
class Side:
    """What a user changes, as `texts` say it. `requirements` are by canonical name of the distribution."""

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
        """The adapters of this side: files in place of those of their name, and requirements in place of pins."""
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
            return tuple(self.requirements.get(_distribution(one), one) for one in requirements)

        return replace(
            pins, dependencies=changed(pins.dependencies), cuda=changed(pins.cuda), built=changed(pins.built)
        )

    def changes(self, adapter: Adapter, variant: Variant, files: Iterable[str]) -> bool:
        """Whether this side says anything of a variant; `files` are the names of the adapters that it replaces."""
        if self.python or self.variables or adapter.name in files:
            return True
        pins = variant.pins
        pinned = {_distribution(one) for one in (*pins.dependencies, *pins.cuda, *pins.built)}
        return bool(pinned & self.requirements.keys())


def parse(texts: Sequence[str]) -> Side:
    """The side that these changes make up. Raises SideError."""
    side = Side(tuple(texts))
    for text in texts:
        side = _with(side, text.strip())
    return side


def contenders(sides: Iterable[Side], adapters: Mapping[str, Adapter], of: Iterable[Contender]) -> list[Contender]:
    """Those of these contenders that any side changes; all of them where no side says anything.

    Raises SideError for a requirement that no contender pins.
    """
    sides, of = list(sides), list(of)
    if not any(side.texts for side in sides):
        return of
    pinned = {
        _distribution(one)
        for library, variant in of
        for pins in (adapters[library].variants[variant].pins,)
        for one in (*pins.dependencies, *pins.cuda, *pins.built)
    }
    for side in sides:
        for name in side.requirements.keys() - pinned:
            raise SideError(f"{name}: no contender of this config pins it{did_you_mean(name, sorted(pinned))}")
    chosen = []
    replaced = [{adapter.name for adapter in side.replacements()} for side in sides]
    for library, variant in of:
        adapter = adapters[library]
        pairs = zip(sides, replaced, strict=True)
        if any(side.changes(adapter, adapter.variants[variant], files) for side, files in pairs):
            chosen.append((library, variant))
    if not chosen:
        raise SideError("no contender of this config is changed by either side; --config or --only names others")
    return chosen


def _with(side: Side, text: str) -> Side:
    """The side with one change more."""
    if text.startswith("python="):
        return replace(side, python=_interpreter(text.removeprefix("python=")))
    if match := VARIABLE.fullmatch(text):
        return replace(side, variables={**side.variables, match[1]: match[2]})
    if text.endswith(".py"):
        if not Path(text).is_file():
            raise SideError(f"{text}: no such file")
        return replace(side, files=(*side.files, Path(text).absolute()))
    folder, _, revision = text.rpartition("@")
    if folder and Path(folder).expanduser().is_dir():
        return _requiring(side, _of_revision(Path(folder).expanduser(), revision))
    return _requiring(side, text)


def _requiring(side: Side, text: str) -> Side:
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        raise SideError(f"{text!r} is none of {FORMS}") from None
    exact = [one for one in requirement.specifier if one.operator in ("==", "===") and not one.version.endswith("*")]
    if not (requirement.url or exact):
        raise SideError(f"{text!r} names no version; write {requirement.name}==VERSION")
    return replace(side, requirements={**side.requirements, canonicalize_name(requirement.name): str(requirement)})


def _interpreter(text: str) -> Path:
    """The interpreter at a path, as an absolute one: a link to it stays one, for it is what makes an environment."""
    path = Path(os.path.abspath(Path(text).expanduser()))
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise SideError(f"python={text}: no program here; expected an interpreter such as .venv/bin/python")
    return path


def _of_revision(folder: Path, revision: str) -> str:
    """The direct reference to a revision of a local repository, by its full hash: a branch may move."""
    commit = _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", lacking=f"no {revision!r}")
    root = _git(folder, "rev-parse", "--show-toplevel", lacking="no git repository")
    text = _git(folder, "show", f"{commit}:pyproject.toml", lacking=f"no pyproject.toml in {revision}")
    name = _name(text)
    if not name:
        raise SideError(
            f"{folder}@{revision}: pyproject.toml gives no name; write NAME @ git+file://{root}@{commit[:12]}"
        )
    return f"{name} @ git+{Path(root).as_uri()}@{commit}"


def _name(text: str) -> str:
    """The distribution that a pyproject.toml with this text describes, or nothing."""
    try:
        document: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return ""
    tables = document.get("project", {}), document.get("tool", {}).get("poetry", {})
    return next((str(table["name"]) for table in tables if "name" in table), "")


def _git(folder: Path, *arguments: str, lacking: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SideError(f"{folder}: a revision needs git, which is not here") from None
    if done.returncode:
        raise SideError(f"{folder}: {lacking} here")
    return done.stdout.strip()


def _distribution(requirement: str) -> str:
    """The canonical name of the distribution that a requirement is of."""
    return canonicalize_name(re.split(r"[=<>!~\[;@ ]", requirement.strip())[0])

"""Documents: the tables of one config file after `--set`, with the origin of every value."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from snnbench.exits import Exit, UserError
from snnbench.printable import cleaned
from snnbench.suggestions import did_you_mean, unknown

Location = tuple[str | int, ...]
"""The keys and positions that lead to a value: ("sweep", 0, "neurons")."""

SUFFIX = ".toml"
SECTIONS = ("protocol", "case", "sweep")


class ConfigError(UserError):
    """A config that cannot be used; the message has a line for each mistake, at most five."""

    code = Exit.CONFIG


@dataclass(frozen=True, slots=True)
class Document:
    """One config file. `settings` maps the location of each value of the command line to the option that gave it."""

    file: str = "config"
    tables: dict[str, Any] = field(default_factory=dict)
    settings: dict[Location, str] = field(default_factory=dict)

    def where(self, *location: str | int) -> str:
        """`configs/core.toml: case.dtype`, or `--set case.dtype` for a value given on the command line."""
        if location in self.settings:
            return self.settings[location]
        match location:
            case ("sweep", int(number), *keys):
                named = [self._sweep(number), *map(str, keys)]
            case _:
                named = [".".join(map(str, location))] if location else []
        return ": ".join([self.file, *named])

    def _sweep(self, number: int) -> str:
        sweeps = self.tables.get("sweep", [])
        name = sweeps[number].get("name") if number < len(sweeps) else None
        return f"sweep {name!r}" if isinstance(name, str) else f"sweep number {number + 1}"


def read(path: Path) -> Document:
    """The document in a TOML file. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors of Windows begin with a mark
    except FileNotFoundError as error:
        siblings = [file.name for file in path.parent.glob("*") if file.suffix == SUFFIX and file.is_file()]
        raise ConfigError(f"{path}: no such file{did_you_mean(path.name, siblings)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not text in UTF-8 (byte {error.start})") from error
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    if path.suffix != SUFFIX:
        raise ConfigError(f"{path}: unknown suffix {path.suffix!r}; a config is a {SUFFIX} file")
    try:
        tables = cleaned(tomllib.loads(text))
    except (ValueError, RecursionError) as error:  # of TOML, a number of thousands of digits, nested too deeply
        raise ConfigError(f"{path}: {error}") from error
    _check_shape(document := Document(str(path), tables))
    return document


def override(document: Document, settings: Sequence[str]) -> Document:
    """The document after `--set key=value`, in order. Unknown keys are refused later, at validation."""
    tables = {**document.tables}
    tables["case"] = dict(tables.get("case", {}))
    tables["sweep"] = [dict(sweep) for sweep in tables.get("sweep", [])]
    if "protocol" in tables:
        tables["protocol"] = dict(tables["protocol"])
    given: dict[Location, str] = {}
    for setting in settings:
        path, equals, text = setting.partition("=")
        path = path.strip()
        if not equals or not path:
            raise ConfigError(f"--set {setting!r}: expected key=value, for instance case.neurons=[64]")
        for location in _locations(path, tables["sweep"]):
            table: Any = tables
            if location[0] == "protocol":
                table.setdefault("protocol", {})
            for key in location[:-1]:
                table = table[key]
            table[location[-1]] = _value(text)
            given[location] = f"--set {path}"
    return Document(document.file, tables, given)


def _locations(path: str, sweeps: list[dict[str, Any]]) -> list[Location]:
    names = [str(sweep.get("name")) for sweep in sweeps]
    match path.split("."):
        case ["case", key] if sweeps and all(key in sweep for sweep in sweeps):
            raise ConfigError(f"--set {path}: without effect: every sweep gives its own (did you mean 'sweep.{key}'?)")
        case ["protocol" | "case" as section, key]:
            return [(section, key)]
        case ["sweep", key]:
            return [("sweep", number, key) for number in range(len(sweeps))]
        case ["sweep", name, key] if name in names:
            return [("sweep", number, key) for number, other in enumerate(names) if other == name]
        case ["sweep", name, _]:
            raise ConfigError(f"--set {path}: {unknown('sweep', name, names)}")
        case [section, *_] if section in SECTIONS:
            forms = f"{section}.KEY or sweep.NAME.KEY" if section == "sweep" else f"{section}.KEY"
            raise ConfigError(f"--set {path}: expected {forms}")
        case [key]:
            return [(key,)]
        case [section, *_]:
            raise ConfigError(f"--set {path}: {unknown('section', section, SECTIONS)}")
    raise AssertionError("split returns at least one part")


def _value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text.strip()  # a bare word is a string: a shell removes the quotes that TOML needs
    return parsed["value"] if len(parsed) == 1 else text


def _check_shape(document: Document) -> None:
    for section in ("protocol", "case"):
        if not isinstance(value := document.tables.get(section, {}), dict):
            raise ConfigError(f"{document.where(section)}: {short(value)} should be a table of keys")
    sweeps = document.tables.get("sweep", [])
    if not isinstance(sweeps, list) or not all(isinstance(sweep, dict) for sweep in sweeps):
        raise ConfigError(f"{document.where('sweep')}: should be a list of tables, each opened by [[sweep]]")


def short(value: Any) -> str:
    """The value as Python writes it, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

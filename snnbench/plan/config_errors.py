"""Mistakes in a config: pydantic's errors, each as one line that a user can act on."""

import re
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from snnbench import workloads
from snnbench.plan.axes import types
from snnbench.plan.config_file import Document, Location, short
from snnbench.suggestions import did_you_mean, nearest, unknown

Keys = dict[str, list[str]]
M = TypeVar("M", bound=BaseModel)

KEY_INSTEAD = {"reset": "profile", "detach_reset": "profile", "library": "libraries", "variant": "libraries"}
"""Field of a cell -> the key that a file uses for it."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake: pydantic's `kind` and `message` for it; `choices` are the valid values, if they are listed."""

    location: Location
    kind: str
    value: Any
    message: str
    choices: tuple[str, ...]


def validated(model: type[M], tables: dict[str, Any], within: Location = ()) -> tuple[M | None, list[Mistake]]:
    """(`tables` as a `model`, their mistakes); None if there are mistakes. `within` is their location in the file."""
    try:
        return model.model_validate(tables), []
    except ValidationError as error:
        return None, [
            Mistake(
                location=(*within, *detail["loc"]),
                kind=detail["type"],
                value=detail["input"],
                message=detail["msg"],
                choices=tuple(re.findall(r"'([^']*)'", str(detail.get("ctx", {}).get("expected", "")))),
            )
            for detail in error.errors(include_url=False)
        ]


def explain(document: Document, mistake: Mistake, keys: Keys) -> str:
    """The line for `mistake`: its location, the wrong value, the expected one, and the nearest valid name."""
    depth = min({"protocol": 1, "case": 1, "sweep": 2}.get(str(mistake.location[0]), 0), len(mistake.location) - 1)
    location, key = mistake.location[: depth + 1], str(mistake.location[depth])
    section = str(location[0]) if depth else ""
    match mistake.kind:
        case "extra_forbidden":
            where = document.where(*(location if location in document.settings else location[:-1]))
            return f"{where}: {_unknown_key(section, key, keys)}"
        case "missing" if section == "sweep" and key in keys["case"]:
            ways = f"give it here, in [case] or by --set case.{key}=VALUE"
            return f"{document.where(*location[:-1])}: missing key {key!r} ({ways})"
        case "missing":
            return f"{document.where(*location[:-1])}: missing key {key!r}"
        case "empty" if location == ("sweep",):
            return f"{document.where()}: no [[sweep]]"
        case "too_many":
            return f"{document.where(*location)}: {mistake.message}"
        case "literal_error":
            expected = f"is not one of {', '.join(mistake.choices)}{did_you_mean(str(mistake.value), mistake.choices)}"
        case _:
            expected = re.sub(r"^[A-Z]\w* should", "should", mistake.message)
    return f"{document.where(*location)}: {short(mistake.value)} {expected}"


def _unknown_key(section: str, key: str, keys: Keys) -> str:
    owner = next((each for each in workloads.WORKLOADS.values() if key in types(each.NAME)), None)
    if section in ("case", "sweep") and owner:
        more = f" (give case.{owner.IMPLIED_BY}, too)" if owner.IMPLIED_BY else ""
        return f"unknown key {key!r}: it belongs to the workload {owner.NAME}{more}"
    near = KEY_INSTEAD.get(key) or nearest(key, keys[section])
    if near in keys[section]:
        return f"unknown key {key!r} (did you mean {near!r}?)"
    below = {name: inner for inner in ("protocol", "case") for name in keys[inner]}
    if not section and (near := nearest(key, below)):
        return f"unknown key {key!r} (did you mean '{below[near]}.{near}'?)"
    return unknown("key", key, keys[section])

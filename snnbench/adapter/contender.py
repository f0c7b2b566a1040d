"""Contenders, each a library and one of its variants, and the patterns by which a user names them.

- `norse`: the library's default variant; `norse/box`: that one; `norse/*`: every variant of the library
- `*`: every library's default variant; `*/index`: that variant, of every library that has it; `*/*`: everything
- `!*/index`, in a list: removes these from the contenders that earlier patterns named
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from snnbench.adapter.declaration import ONLY_VARIANT, Adapter
from snnbench.cases.case import Case
from snnbench.exits import Exit, UserError
from snnbench.suggestions import unknown

Contender = tuple[str, str]
"""(library, variant)."""


class UnknownContender(UserError):
    """A pattern names no contender; the message is the end of a line that starts with the place of the pattern."""

    code = Exit.USAGE


def find_all(patterns: Iterable[str], adapters: dict[str, Adapter]) -> tuple[list[Contender], list[UnknownContender]]:
    """The contenders that patterns name, each once, in order; and an error for each pattern that names none."""
    contenders: dict[Contender, None] = {}
    wrong = []
    for pattern in patterns:
        try:
            named = find(pattern.removeprefix("!"), adapters)
        except UnknownContender as error:
            wrong.append(error)
            continue
        if pattern.startswith("!"):
            contenders = {one: None for one in contenders if one not in named}
        else:
            contenders |= dict.fromkeys(named)
    return list(contenders), wrong


def find(pattern: str, adapters: dict[str, Adapter]) -> list[Contender]:
    """The contenders that `pattern` names, in the order of `adapters`. Raises UnknownContender if it names none."""
    library, slash, variant = pattern.partition("/")
    if (library != "*" or not adapters) and library not in adapters:
        name = re.split("[=<>~! @]", library)[0]
        if name != library and name in adapters:
            path, version = adapters[name].path, adapters[name].variants[adapters[name].default].pins.version
            ways = f"--adapter FILE.py takes a copy of {path} with another pin"
            raise UnknownContender(f"{library}: the adapter {name} is for version {version or 'any'}; {ways}")
        raise UnknownContender(unknown("library", library, adapters))
    candidates = list(adapters.values()) if library == "*" else [adapters[library]]
    if not slash:
        contenders = [(adapter.name, adapter.default) for adapter in candidates]
    else:
        contenders = [
            (adapter.name, name) for adapter in candidates for name in adapter.variants if variant in (name, "*")
        ]
    if not contenders:
        variants = dict.fromkeys(name for adapter in candidates for name in adapter.variants)
        raise UnknownContender(f"{library}: {unknown('variant', variant, variants)}")
    return contenders


def label(library: str, variant: str) -> str:
    """`library/variant`, or the library alone if it has only one variant."""
    return library if variant == ONLY_VARIANT else f"{library}/{variant}"


@dataclass(frozen=True, slots=True)
class Work:
    """One cell: a case and the contender that runs it."""

    case: Case
    library: str
    variant: str

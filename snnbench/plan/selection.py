"""Selections: the conditions of `--only`, which pick cells.

    neurons>=512,dtype=float32,library=norse|sinabs

Conditions are joined by commas and must all hold. Keys are the fields of a case, `profile`, `library` and `variant`;
numbers are compared as numbers. A case without a field fits no condition on it but !=. `library` matches the library's
name or `library/variant`, and takes * and ?.
"""

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args, get_type_hints

from snnbench import workloads
from snnbench.adapter.contender import Work
from snnbench.cases.case import PROFILES
from snnbench.exits import Exit, UserError
from snnbench.suggestions import did_you_mean, unknown

Condition = Callable[[Work], bool]

FIELDS: dict[str, Any] = {
    name: kind
    for workload in workloads.WORKLOADS.values()
    for name, kind in get_type_hints(workload.Case).items()
    if name in workload.Case.names() and name != "workload"
}
"""The fields of every workload's cases, with their types."""
KINDS: dict[str, Any] = FIELDS | {
    "workload": Literal[tuple(workloads.WORKLOADS)],
    "profile": Literal[tuple(PROFILES)],
    "library": str,
    "variant": str,
}
CONDITION = re.compile(r"\s*(?P<key>[^=!<>\s]+)\s*(?P<sign>!=|<=|>=|==|=|<|>)\s*(?P<values>.*?)\s*")
ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class SelectionError(UserError):
    """A malformed or empty selection; the message is one line."""

    code = Exit.USAGE


def parse(expression: str) -> Condition:
    """The condition that `expression` stands for. Raises SelectionError."""
    conditions = [_condition(text) for text in expression.split(",")]
    return lambda work: all(holds(work) for holds in conditions)


def nothing_left(expressions: Iterable[str], works: Sequence[Work]) -> SelectionError:
    """The error that no work meets the conditions; it names the first one that none meets, and a near value."""
    texts = [text.strip() for expression in expressions for text in expression.split(",")]
    text = next((text for text in texts if not any(map(_condition(text), works))), None)
    if text is None or (match := CONDITION.fullmatch(text)) is None:
        return SelectionError("--only: no cell of this config is left")
    there = list(dict.fromkeys(name for work in works for name in _names(work, match["key"])))
    near = did_you_mean(match["values"], there) or f" (there: {', '.join(there[:8])})" * bool(there)
    return SelectionError(f"--only: no cell of this config is left: none has {text}{near}")


def of_cases(expression: str) -> bool:
    """Whether `expression` has conditions on cases only, not on contenders."""
    matches = (CONDITION.fullmatch(text) for text in expression.split(","))
    return not any(match and match["key"] in ("library", "variant") for match in matches)


def _condition(text: str) -> Condition:
    match = CONDITION.fullmatch(text)
    if match is None:
        raise SelectionError(
            f"--only: {text.strip()!r}: expected a condition such as neurons>=512 or library=norse|sinabs"
        )
    key, sign, values = match["key"], match["sign"], [value.strip() for value in match["values"].split("|")]
    if key not in KINDS:
        raise SelectionError(f"--only: {unknown('key', key, KINDS)}")
    if "" in values:
        raise SelectionError(f"--only: {text.strip()!r} lacks a value")
    if sign in ORDERS:
        return _ordered(key, sign, values)
    equal = _numeric(key, values) if KINDS[key] in (int, float) else _textual(key, values)
    return (lambda work: not equal(work)) if sign == "!=" else equal


def _ordered(key: str, sign: str, values: list[str]) -> Condition:
    if KINDS[key] not in (int, float):
        raise SelectionError(f"--only: {key} has no order (expected {key}=... or {key}!=...)")
    if len(values) > 1:
        raise SelectionError(f"--only: {key}{sign} takes one value, not {len(values)}")
    limit, holds = _number(key, values[0]), ORDERS[sign]
    return lambda work: key in work.case.names() and holds(getattr(work.case, key), limit)


def _numeric(key: str, values: list[str]) -> Condition:
    numbers = {_number(key, value) for value in values}
    return lambda work: getattr(work.case, key, None) in numbers


def _number(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise SelectionError(f"--only: {key}: {value!r} is not a number") from None


def _textual(key: str, values: list[str]) -> Condition:
    choices = ("true", "false") if KINDS[key] is bool else get_args(KINDS[key])
    for value in values:
        if choices and value not in choices:
            near = did_you_mean(value, choices)
            raise SelectionError(f"--only: {key}: {value!r} is not one of {', '.join(choices)}{near}")
    return lambda work: any(fnmatchcase(name, value) for name in _names(work, key) for value in values)


def _names(work: Work, key: str) -> list[str]:
    """The names of a work that a value of `key` may match."""
    if key == "library":
        return [work.library, f"{work.library}/{work.variant}"]
    if key == "variant":
        return [work.variant]
    if key != "profile" and key not in work.case.names():
        return []  # the workload has no such axis
    value = getattr(work.case, key)
    return [str(value).lower() if isinstance(value, bool) else str(value)]

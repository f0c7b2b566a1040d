"""Facts: a nested document, such as machine.json, as pairs of a path and a value."""

from collections.abc import Iterator
from typing import Any


def flat(facts: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted path, value) of every leaf, in order. A list is descended into only if it holds a dictionary."""
    if isinstance(facts, dict):
        for name, value in facts.items():
            yield from flat(value, f"{path}.{name}".strip("."))
    elif isinstance(facts, list) and any(isinstance(fact, dict) for fact in facts):
        for number, fact in enumerate(facts):
            yield from flat(fact, f"{path}.{number}".strip("."))
    else:
        yield path, facts

"""Suggestions: the valid name nearest to a mistyped one, for error messages."""

import difflib
from collections.abc import Iterable


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """The valid name most like `name`, or None if no name is like it; case is ignored."""
    by_lower = {candidate.lower(): candidate for candidate in valid}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[close[0]] if close else None


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """` (did you mean 'neurons'?)`, or "" if no valid name is near."""
    near = nearest(name, valid)
    return f" (did you mean {near!r}?)" if near else ""


def unknown(kind: str, name: str, valid: Iterable[str]) -> str:
    """`unknown key 'neuron' (did you mean 'neurons'?)`; all valid names if none is near."""
    names = list(valid)
    all_names = f" (known: {', '.join(names) or 'none'})"
    return f"unknown {kind} {name!r}{did_you_mean(name, names) or all_names}"

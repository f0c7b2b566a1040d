"""Numbers in sentences: intervals, ranges, counts and lists."""

from collections.abc import Collection, Iterable

from snnbench.units import number


def spread(value: float, low: float | None, high: float | None, unit: float = 1.0) -> str:
    """`5.23 (5.1-5.36)`, in units; without an interval the value alone."""
    interval = "" if low is None or high is None else f" ({number(low / unit)}-{number(high / unit)})"
    return f"{number(value / unit)}{interval}"


def between(values: Collection[float]) -> str:
    """`1.3`, or `1.3 to 2.1`."""
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def counted(count: int, noun: str) -> str:
    """`1 trial`, `2 trials`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(words: Collection[str], joint: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    *most, last = words
    return f"{', '.join(most)} {joint} {last}" if most else last


def gathered(sentences: Iterable[tuple[str, str]], places: Iterable[str]) -> list[str]:
    """Each of these (place, sentence) once; a sentence that does not hold for all `places` names its own."""
    by_sentence: dict[str, dict[str, None]] = {}
    for place, sentence in sentences:
        by_sentence.setdefault(sentence, {})[place] = None
    count = len(set(places))
    return [each if len(own) == count else f"{each} ({'; '.join(own)})" for each, own in by_sentence.items()]

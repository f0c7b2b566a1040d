"""Units of time, memory and energy, and numbers as text with three digits."""

from collections.abc import Iterable

US, MS, S = 1e3, 1e6, 1e9
"""Nanoseconds in a microsecond, a millisecond and a second."""
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
"""Bytes in a KiB, a MiB and a GiB."""
SCALES = {
    "ns": ((S, "s"), (MS, "ms"), (US, "us"), (1, "ns")),
    "bytes": ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")),
    "joules": ((1, "J"), (1e-3, "mJ"), (1e-6, "uJ")),
}


def number(value: float) -> str:
    """Three digits, without a unit."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def quantity(value: float, unit: str) -> str:
    """A number of "ns", "bytes" or "joules", with three digits, in the largest unit that gives at least 1."""
    size, name = next(((size, name) for size, name in SCALES[unit] if value >= size), SCALES[unit][-1])
    return f"{number(value / size)} {name}"


def quantities(values: Iterable[float], unit: str) -> str:
    """Several values, each as by `quantity`."""
    return ", ".join(quantity(value, unit) for value in values)

"""Refusals of a case: the library cannot express it, or the machine lacks a requirement.

Both skip a cell, with the message as the reason. They tell a reader the next step: choose another library, or fix the
machine.
"""

from typing import Any

from snnbench.exits import Exit, UserError


class Unsupported(Exception):
    """The library cannot express the case, on any machine; the message says why."""


class Unavailable(Exception):
    """The machine lacks a requirement of the library: a card, a driver, a compiler, a build, a part of the kernel.

    The message names the missing part and how to get it.
    """


class Incorrect(Exception):
    """A network's answer cannot be compared, for example because spikes carry no gradient."""


class AdapterError(UserError):
    """The adapter file is not usable; the message says where and why."""

    code = Exit.UNAVAILABLE


def require(case: Any, because: str, **allowed: Any) -> None:
    """Raise Unsupported if a field of `case` is not among its allowed values (one, or a tuple of values).

    `profile` is a field here, too: require(case, "LIFNeuronTorch subtracts", profile=("subtract",)).
    """
    for name, values in allowed.items():
        value = getattr(case, name)
        choices = values if isinstance(values, tuple) else (values,)
        if value not in choices:
            # Every table shows the profile with the reason, and lists a reason once for several profiles.
            raise Unsupported(because if name == "profile" else f"{because} (asked for {name} {value})")

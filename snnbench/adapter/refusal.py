"""Refusals: a case that a library cannot express, and a case that a machine lacks something for.

Both end a cell as skipped, with the message as the reason. Which of them it is decides what a reader does next: choose
another library, or mend the machine.
"""

from typing import Any

from snnbench.exits import Exit, UserError


class Unsupported(Exception):
    """The library cannot express the case, on any machine; the message says why."""


class Unavailable(Exception):
    """The machine lacks what the library needs: a card, a driver, a compiler, a build, a part of the kernel.

    The message says what, and how to get it.
    """


class Incorrect(Exception):
    """Raised where a network's answer cannot even be compared, for instance when spikes carry no gradient."""


class AdapterError(UserError):
    """The adapter file itself is not usable; the message says where and why."""

    code = Exit.UNAVAILABLE


def require(case: Any, because: str, **allowed: Any) -> None:
    """Raise Unsupported where a field of `case` is none of its allowed values (one, or a tuple of them).

    `profile` is a field here too: require(case, "LIFNeuronTorch subtracts", profile=("subtract",)).
    """
    for name, values in allowed.items():
        value = getattr(case, name)
        choices = values if isinstance(values, tuple) else (values,)
        if value not in choices:
            # Every table has the profile beside the reason, and lists a reason once for several profiles.
            raise Unsupported(because if name == "profile" else f"{because} (asked for {name} {value})")

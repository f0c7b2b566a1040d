"""Refusals: a case that a library cannot express, and a case that a machine lacks something for.

Both end a cell as skipped, with the message as the reason. Which of them it is decides what a reader does next: choose
another library, or mend the machine.
"""


class Unsupported(Exception):
    """The library cannot express the case, on any machine; the message says why."""


class Unavailable(Exception):
    """The machine lacks what the library needs: a card, a driver, a compiler, a build, a part of the kernel.

    The message says what, and how to get it.
    """

"""Exit codes, and the errors that a user can act on."""

from enum import IntEnum


class Exit(IntEnum):
    """How the program can end. Typer itself ends with 2 for a usage error."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> "Exit":
        """A number that carries its meaning."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    OK = 0, "all is well"
    ERROR = 1, "something else went wrong, such as a results folder that cannot be written"
    USAGE = 2, "the command line is not understood"
    CONFIG = 3, "the config is invalid"
    UNAVAILABLE = 4, "an environment or adapter is unavailable"
    FAILED_CELLS = 5, "finished, with cells that failed or can prove nothing"
    FOUND = 6, "a comparison found what --fail-on names"
    UNSOUND = 7, "a recording does not keep the rules of measurement"
    INCOMPARABLE = 8, "two recordings are not of the same work, protocol, precision or machine model"
    INTERNAL = 70, "a fault of snnbench itself"
    INTERRUPTED = 130, "interrupted"


class UserError(ValueError):
    """An error that a user can act on: the message is one line with the step to take; `code` is the exit code."""

    code = Exit.ERROR

"""The refusal to make code."""

from snnbench.exits import Exit, UserError


class NoCode(UserError):
    """There is no code for this contender and case; the message says why."""

    code = Exit.USAGE

"""Flags in the help of a command: typer shows the type `<bool>` behind each, as if it took a value."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


def _without_types(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with `--help`."""
        return _without_types(super().get_params(ctx))


class Group(TyperGroup):
    """A command with commands of its own."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with `--help`."""
        return _without_types(super().get_params(ctx))

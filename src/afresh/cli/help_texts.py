"""Commands whose ``--help`` shows flags as flags: ``--web`` and not ``--web <bool>``."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


def _without_values(parameters: list[Any]) -> list[Any]:
    """Return the parameters after setting the metavar of each flag to "", because a flag takes no value."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters


class PlainCommand(TyperCommand):
    """A command of the program."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """The program, or a command that has commands of its own."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))

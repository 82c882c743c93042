"""Commands whose ``--help`` shows flags as flags (``--web``, not ``--web <bool>``), and which load late."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import typer
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


class LateCommand(PlainCommand):
    """A command of the program whose module is imported, and whose parameters are read, at their first use.

    Reading the parameters of all commands takes longer than most commands. ``place`` is ``module:function``.
    """

    def __init__(self, name: str, place: str, panel: str) -> None:
        super().__init__(name, rich_help_panel=panel)
        self._place = place
        del self.help, self.params, self.callback  # so that ``__getattr__`` is asked for them

    def __getattr__(self, name: str) -> Any:
        if name == "help":
            self.help = inspect.getdoc(self._function())
        elif name in ("params", "callback"):
            alone = typer.Typer(add_completion=False)
            alone.command(self.name, cls=PlainCommand)(self._function())
            read = typer.main.get_command(alone)
            self.params, self.callback = read.params, read.callback
        else:
            raise AttributeError(f"the command {self.name} has no attribute {name!r}")
        return getattr(self, name)

    def _function(self) -> Any:
        module, function = self._place.split(":")
        return getattr(import_module(module), function)


class PlainGroup(TyperGroup):
    """The program, or a command that has commands of its own."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))

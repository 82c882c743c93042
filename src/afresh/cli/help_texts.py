"""Commands whose ``--help`` shows flags as flags (``--web``, not ``--web <bool>``), and which load late."""

from __future__ import annotations

import inspect
import re
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


_WANTED = (
    (r"Input should be a valid number\b.*", "must be a number"),
    (r"Input should be a valid integer\b.*", "must be a whole number"),
    (r"Input should be greater than or equal to (\S+)", r"must be at least \1"),
    (r"Input should be less than or equal to (\S+)", r"must be at most \1"),
    (r"Input should be (greater|less) than (\S+)", r"must be \1 than \2"),
)
"""What Typer says of a wrong value (a pattern), and the same in plain words."""


def plain_words(message: str) -> str:
    """Return what is wrong with the value of an option, in plain words.

    >>> plain_words("Input should be a valid number, unable to parse string as a number")
    'must be a number'
    """
    for pattern, words in _WANTED:
        message = re.sub(pattern, words, message)
    return message


class PlainCommand(TyperCommand):
    """A command of the program."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = plain_words(error.message)
            raise


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

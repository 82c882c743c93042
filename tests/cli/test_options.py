"""Dataclasses of options: each field is an option of every command that takes the dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from afresh.cli.options import with_option_groups


@dataclass(frozen=True, kw_only=True)
class Shared:
    name: Annotated[str, typer.Option(metavar="NAME", help="Whom to greet.")]
    times: Annotated[int, typer.Option(min=1, help="How often.")] = 2
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False


@dataclass(frozen=True, kw_only=True)
class Further(Shared):
    tag: Annotated[list[str] | None, typer.Option(help="Words.")] = None


CALLS: list[Any] = []
APP = typer.Typer()


@APP.command()
@with_option_groups
def one(file: Annotated[str, typer.Argument(help="Where.")], options: Shared, end: str = "!") -> None:
    """Greet once."""
    CALLS.append((file, options, end))


@APP.command()
@with_option_groups
def two(options: Further) -> None:
    """Greet with tags."""
    CALLS.append(options)


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (("one", "f", "--name", "x"), ("f", Shared(name="x"), "!")),
        (("one", "f", "--name", "x", "--times", "3", "--json", "--end", "?"),
         ("f", Shared(name="x", times=3, as_json=True), "?")),
        (("two", "--name", "x", "--tag", "a", "--tag", "b"), Further(name="x", tag=["a", "b"])),
    ],
)  # fmt: skip
def test_options_arrive_as_one_object_beside_other_parameters(words: tuple[str, ...], call: Any) -> None:
    CALLS.clear()
    assert CliRunner().invoke(APP, words).exit_code == 0
    assert call == CALLS.pop()


@pytest.mark.parametrize(
    "words", [("one", "f"), ("one", "f", "--name", "x", "--times", "0"), ("two", "--end", "?")]
)
def test_required_options_bounds_and_unknown_options_are_checked(words: tuple[str, ...]) -> None:
    CALLS.clear()
    assert CliRunner().invoke(APP, words).exit_code == 2
    assert CALLS == []


def test_the_help_of_each_command_names_every_shared_option() -> None:
    for command in ("one", "two"):
        text = CliRunner().invoke(APP, (command, "--help"), env={"COLUMNS": "120"}).output
        assert all(option in text for option in ("--name", "--times", "--json", "Whom to greet."))

"""The docs name every command and option, and the README's commands run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

import afresh
from afresh.cli.app import app

ROOT = Path(__file__).parent.parent
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def section(command: str) -> str:
    """The part of docs/commands.md about one command."""
    text = (ROOT / "docs" / "commands.md").read_text()
    found = re.search(rf"^## {command}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"docs/commands.md has no section '## {command}'"
    return found[1]


def parameters(command: str) -> list[Any]:
    """Arguments and options of a command and of its subcommands."""
    found = COMMANDS[command]
    below = getattr(found, "commands", {}).values()
    return [parameter for one in (found, *below) for parameter in one.params]


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_option_is_documented(command: str) -> None:
    text = section(command)
    for parameter in parameters(command):
        if parameter.param_type_name == "option" and parameter.name != "help":
            long = max(parameter.opts, key=len)
            assert f"`{long}`" in text, f"{command} {long} is not in docs/commands.md"


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_documented_option_exists(command: str) -> None:
    known = {option for parameter in parameters(command) for option in parameter.opts}
    assert set(re.findall(r"`(--[a-z][a-z-]*)`", section(command))) <= known


def test_global_options_are_documented() -> None:
    text = (ROOT / "docs" / "commands.md").read_text().split("\n## ")[0]
    for parameter in typer.main.get_command(app).params:
        assert max(parameter.opts, key=len) in text


def test_every_python_name_is_documented() -> None:
    text = (ROOT / "docs" / "python.md").read_text()
    for name in afresh.__all__:
        assert f"`afresh.{name}" in text or f"afresh.{name}(" in text, (
            f"afresh.{name} is not in docs/python.md"
        )


def test_links_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_files_named_in_the_architecture_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    layers = "|".join(path.name for path in (ROOT / "src" / "afresh").iterdir() if path.is_dir())
    named = set(re.findall(rf"\b((?:{layers}|tests|docs)/[a-z_/]*(?:\.py|\.md)?)", text))
    assert len(named) > 40
    for name in named:
        assert any((base / name).exists() for base in (ROOT / "src" / "afresh", ROOT)), f"no {name}"

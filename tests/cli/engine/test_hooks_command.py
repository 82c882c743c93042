"""``afresh hooks``: what hooks could not be told is listed, retried, dropped, and told again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh
from tests.cli.engine.conftest import QUICK, write_settings
from tests.servers.site import Site

# Writes down what it is told, and fails while there is a file "broken".
HOOK = """
import pathlib, sys
if pathlib.Path("broken").exists():
    sys.exit("no index today")
with open("told", "a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
"""


@pytest.fixture
def hooked(mirror: Afresh, site: Site, tmp_path: Path) -> Afresh:
    """A project whose hook was told of two items, or was not, because it is broken."""
    (tmp_path / "hook.py").write_text(HOOK)
    command = json.dumps([sys.executable, "hook.py"])
    write_settings(
        tmp_path, f"[[source]]\nname = 'web'\non_change = {command}\n[source.hook]\nattempts = 1\n"
    )
    (tmp_path / "broken").touch()
    mirror("add", f"{site.url}/a", f"{site.url}/b")
    assert mirror("run", "--once", *QUICK).code == 0
    return mirror


def run(afresh: Afresh, tmp_path: Path) -> list[str]:
    """Run again with a hook that works; return what it was told since."""
    (tmp_path / "broken").unlink(missing_ok=True)
    (tmp_path / "told").unlink(missing_ok=True)
    assert afresh("run", "--once", *QUICK).code == 0
    path = tmp_path / "told"
    return sorted(path.read_text().splitlines()) if path.exists() else []


def test_what_was_given_up_is_listed_and_told_on_request(hooked: Afresh, site: Site, tmp_path: Path) -> None:
    lines = hooked("hooks").out.splitlines()
    assert len(lines) == 2
    assert lines[0].endswith("1 attempt, given up: " + f"{sys.executable} ended with 1: no index today")
    found = json.loads(hooked("hooks", "list", "--json").out)
    assert (found["waiting"], found["given_up"]) == (0, 2)
    first = next(one for one in found["failures"] if one["item"] == f"{site.url}/a")
    assert (first["kind"], first["source"], first["next_s"]) == ("new", "web", None)
    status = hooked("status").out
    assert "2 changes given up" in status
    assert json.loads(hooked("status", "--json").out)["events_given_up"] == 2
    assert run(hooked, tmp_path) == []  # given up is given up
    assert hooked("hooks", "retry", first["id"]).err == "1 change retried\n"
    assert run(hooked, tmp_path) == [f"new {site.url}/a"]
    assert hooked("hooks", "drop", "--all").err == "1 change dropped\n"
    assert hooked("hooks").out == ""


def test_changes_are_told_again_from_a_cursor(hooked: Afresh, site: Site, tmp_path: Path) -> None:
    hooked("hooks", "drop", "--all")
    first = json.loads(hooked("changes", "--json", "--limit", "1").out)
    assert hooked("hooks", "retell", "--since", first["cursor"]).err.startswith("1 change told again")
    assert len(run(hooked, tmp_path)) == 1
    assert hooked("hooks", "retell", "--source", "web").code == 0
    assert run(hooked, tmp_path) == [f"new {site.url}/a", f"new {site.url}/b"]
    assert hooked("hooks", "retell", "--since", "1-1-00000000").code == 1


def test_wrong_arguments_say_what_would_be_right(mirror: Afresh) -> None:
    for wrong, words in (
        (("retry",), "needs the numbers of changes, or --all"),
        (("drop", "1", "--all"), "needs the numbers of changes, or --all"),
        (("list", "--since", "1-1-00000000"), "are for 'hooks retell'"),
        (("retell", "--source", "web"), "has no hook: set on_change"),
        (("redo",), "unknown action 'redo'"),
    ):
        ran = mirror("hooks", *wrong)
        assert ran.code == 2
        assert words in ran.err

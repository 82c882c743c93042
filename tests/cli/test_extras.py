"""Without the optional packages: what works, and what names the line that installs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# One process performs several commands, as if the packages of the extras were not installed.
WITHOUT = """
import json, sys
for name in ("fastapi", "starlette", "uvicorn", "jinja2", "plotly", "prometheus_client", "matplotlib"):
    sys.modules[name] = None
from afresh.cli.app import main
codes = []
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as ended:
        codes.append(ended.code or 0)
    else:
        codes.append(0)
print(json.dumps(codes))
"""


def without_extras(folder: Path, *commands: str) -> tuple[list[int], str]:
    """Exit codes, and what was written to standard error."""
    words = [sys.executable, "-c", WITHOUT, json.dumps([command.split() for command in commands])]
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout.splitlines()[-1]), ran.stderr


@pytest.mark.waits
def test_the_core_works_alone_and_the_rest_names_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate\na,1\nb,2\n")
    codes, said = without_extras(
        tmp_path,
        "init .",
        "config check",
        "status",
        "plan items.csv --budget 1/d --json",
        "run --once",
        "serve",
        "run --web",
        "plan items.csv --budget 1/d --plot plan.png",
        "reproduce --html all.html",
    )
    assert codes == [0, 0, 0, 0, 0, 2, 2, 2, 2], said
    assert said.count("the dashboard needs more packages: pip install 'afresh[web]'") == 2
    assert "a picture needs more packages: pip install 'afresh[plots]'" in said
    assert "the report needs more packages: pip install 'afresh[plots]'" in said
    assert not (tmp_path / "plan.png").exists()


@pytest.mark.waits
def test_a_picture_leaves_nothing_in_the_home_directory(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    for made in (home, folder):
        made.mkdir()
    (folder / "items.csv").write_text("item,rate\na,1\nb,2\n")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("XDG", "MPL"))}
    words = [sys.executable, "-m", "afresh", "plan", "items.csv", "--budget", "1/d", "--plot", "plan.svg"]
    subprocess.run(words, cwd=folder, env={**environment, "HOME": str(home)}, check=True, capture_output=True)
    assert (folder / "plan.svg").exists()
    assert list(home.iterdir()) == []

"""An environment with the packages of the core and no others, made in a moment from those installed here."""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from tests.lowest_versions import lowest_versions

ROOT = Path(__file__).parent.parent
_NAME = re.compile(r"[\w.-]+")


def core_packages() -> set[str]:
    """Return the names of the distributions that ``dependencies`` of pyproject.toml need, and their own."""
    found: set[str] = set()
    wanted = [line.partition("==")[0] for line in lowest_versions(extras=())]
    while wanted:
        name = wanted.pop().lower()
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:  # on this machine it is not needed
            continue
        if name not in found:
            found.add(name)
            wanted += [_NAME.match(line)[0] for line in needs if "extra ==" not in line]  # type: ignore[index]
    return found


def make_core_environment(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Link the packages of the core, and afresh itself, into ``folder``. Return a tuple: the words that start
    Python there, and its environment."""
    for name in core_packages():
        for file in distribution(name).files or ():
            top = file.parts[0]
            place = folder / top
            if top not in ("..", "__pycache__") and not place.is_symlink():
                place.symlink_to(Path(str(distribution(name).locate_file(top))))
    (folder / "afresh").symlink_to(ROOT / "src" / "afresh")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    # -S leaves out the packages of this environment; PYTHONPATH names those of the core.
    return [sys.executable, "-S"], environment | {"PYTHONPATH": str(folder)}

"""Builds the documentation as a web site (``make docs``): pages, search, and the reference of the Python API.

The pages of the project are copied into one folder, because some of them are not in ``docs``. Sphinx then
checks every link between them; a warning ends the build. Nothing is requested from the network, and the
result loads nothing from other hosts.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "site"
INDEX = SITE / "index.md"
# A page of the project's folder that is shown under another name.
ROOT_PAGES = ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "GLOSSARY", "SECURITY")
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")


def copy_pages(folder: Path) -> None:
    """Copy all pages and pictures to ``folder``, with links as they are there."""
    for name in ("conf.py", "index.md", "llms.txt"):
        shutil.copy(SITE / name, folder)
    for path in sorted(SITE.glob("*.rst")):
        shutil.copy(path, folder)
    for path in sorted((ROOT / "docs").glob("*.png")):
        shutil.copy(path, folder)
    shutil.copy(ROOT / "docs" / "grafana.json", folder)
    for path in [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / f"{name}.md" for name in ROOT_PAGES)]:
        (folder / path.name).write_text(_LINK.sub(_moved, path.read_text()))


def _moved(found: re.Match[str]) -> str:
    """Return a link as it must be in one folder with all pages. The README is the page ``index``."""
    target = found[2]
    if "://" not in target:
        name = Path(target).name
        target = "index.md" if name == "README.md" else name
    return f"{found[1]}{target}{found[3]}"


def build(output: Path) -> int:
    """Build the site in ``output``; return 0 if it was built without a warning."""
    from sphinx.cmd.build import build_main

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_pages(folder)
        words = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(folder / "_trees")]
        return int(build_main([*words, str(folder), str(output)]))


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1] if len(sys.argv) > 1 else "build/docs")))

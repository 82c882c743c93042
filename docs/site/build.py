"""Builds the documentation as a web site (``make docs``): pages, search, and the reference of the Python API.

The pages of the project are copied into one folder, because some of them are not in ``docs``, and the page of
tasks becomes a page for each task. Sphinx then checks every link between them; a warning ends the build.
Nothing is requested from the network, and the result loads nothing from other hosts.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "site"
INDEX = SITE / "index.md"
TASKS = ROOT / "docs" / "howto.md"
ROOT_PAGES = ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "GLOSSARY", "SECURITY")
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")


def copy_pages(folder: Path) -> None:
    """Copy all pages and pictures to ``folder``, with links as they are there."""
    for name in ("conf.py", "llms.txt"):
        shutil.copy(SITE / name, folder)
    (folder / INDEX.name).write_text(_LINK.sub(_moved, INDEX.read_text()))
    for path in sorted(SITE.glob("*.rst")):
        shutil.copy(path, folder)
    for path in sorted((ROOT / "docs").glob("*.png")):
        shutil.copy(path, folder)
    shutil.copy(ROOT / "docs" / "grafana.json", folder)
    for path in [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / f"{name}.md" for name in ROOT_PAGES)]:
        (folder / path.name).write_text(_LINK.sub(_moved, path.read_text()))
    tasks = (folder / TASKS.name).read_text()
    for name, text in split_tasks(tasks).items():
        (folder / name).write_text(text)


def split_tasks(text: str) -> dict[str, str]:
    """Return a page for each task of the page of tasks (a heading of the third level), by its name, and the
    page of tasks itself, which lists them.

    >>> sorted(split_tasks("# How to …\\n\\n## Jobs\\n\\n### Spare a host\\n\\nSo.\\n"))
    ['howto-spare-a-host.md', 'howto.md']
    """
    first, *parts = re.split(r"^### (.*)\n", text, flags=re.MULTILINE)
    pages, overview = {}, first
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        body, heading, rest = body.partition("\n## ")
        name = f"{TASKS.stem}-{_anchor(title)}"
        pages[f"{name}.md"] = f"# {title}\n{body}\n"
        overview += f"```{{toctree}}\n:maxdepth: 1\n\n{name}\n```\n{heading}{rest}"
    return pages | {TASKS.name: overview.replace("```\n```{toctree}\n:maxdepth: 1\n\n", "")}


def _anchor(heading: str) -> str:
    """The name of a heading in links, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _moved(found: re.Match[str]) -> str:
    """Return a link as it must be in one folder with all pages. The README is the page ``index``, and each
    task has a page of its own."""
    target, anchor = found[2], found[3].removesuffix(")")
    if "://" not in target:
        name = Path(target).name
        target = "index.md" if name == "README.md" else name
        if name == TASKS.name and anchor.removeprefix("#") in _tasks():
            target, anchor = f"{TASKS.stem}-{anchor[1:]}.md", ""
    return f"{found[1]}{target}{anchor})"


@cache
def _tasks() -> frozenset[str]:
    return frozenset(map(_anchor, re.findall(r"^### (.*)$", TASKS.read_text(), re.MULTILINE)))


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

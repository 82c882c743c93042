"""Pages, messages and templates are plain: a reader who is not a native speaker understands them at once.

Each expression below stopped such a reader; beside it is what to write instead. Messages are the texts in the
code that are not docstrings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLAINER = {
    r"\bof late\b": "recently",
    r"\banew\b": "again",
    r"\bbut for\b": "except for",
    r"(?<!up to 100 )\bin words\b": "with a message",
    r"\b(is|are) said\b": "say who says it: 'status says …'",
    r"beyond chance": "by more than chance explains",
    r"\ball the same\b": "nevertheless, or say what happens",
    r"\bheeded\b": "obeyed",
    r"\bas ever\b": "as usual",
    r"\bdear\b": "expensive",
    r"\bever (more|less) \w+": "more and more …, less and less …, after longer and longer waits",
    r"\b(as|if) you like\b": "optional, optionally",
    r"\bunless said\b": "if no … is given",
    r"beforehand": "before",
    r"\bbe had\b": "be fetched",
    r"\bfor (it|they|he|nobody) (is|are|would|has|have|was|goes)\b": "because",
    r"without end\b": "endless, unbounded",
    r"\bwhoever\b": "the program (person, worker) that",
    r"\bworth a poll\b.*\bworth\b.*\bworth\b": "say it in two sentences",
    r"not made up for": "unused slots are not carried over",
    r"count for nothing": "is discarded",
    r"stands below its": "in its",
    r"names neither": "no … found",
    r"\bcould not be had\b": "could not be fetched",
    r"\bthereof\b|\bthereby\b|\blest\b|\bnought\b": "a plain sentence",
}
"""Expression: what to write instead."""
ANY = re.compile("|".join(PLAINER))

_LEFT = {"CHANGELOG.md": "what was released keeps its words", "experiments.md": "the protocol's own words"}


def texts() -> Iterator[tuple[str, str]]:
    """The place and text of every page, template and message."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "site").glob("*.md")]:
        if page.name not in _LEFT:
            yield str(page.relative_to(ROOT)), page.read_text()
    for template in (ROOT / "src").rglob("*.html"):
        yield str(template.relative_to(ROOT)), template.read_text()
    for path in (ROOT / "src").rglob("*.py"):
        for line, message in messages(path):
            yield f"{path.relative_to(ROOT)}:{line}", message


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """The lines and texts of the strings of a module that are not docstrings."""
    tree = ast.parse(path.read_text())
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.lineno, node.value


def test_no_expression_stops_a_reader() -> None:
    found = [
        f"{place}: …{text[max(0, hit.start() - 50) : hit.end() + 20]!r}…: write {plainer!r}"
        for place, text in texts()
        if ANY.search(text)
        for pattern, plainer in PLAINER.items()
        for hit in re.finditer(pattern, text)
    ]
    assert found == []


def test_messages_are_strings_that_are_not_docstrings(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""Whoever."""\nraise ValueError(f"{1} of late")\n')
    assert list(messages(module)) == [(2, " of late")]

"""The code blocks of the pages that people read, every one of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {page.stem.lower(): page for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])}
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^\n|\A)((?: {4}.*\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One block: the page and line where it stands, its language, its text."""

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return f"{PAGES[self.page].relative_to(ROOT)}:{self.line}"


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page in their order; one without a fence has the language ``indented``."""
    text = PAGES[page].read_text()
    fenced = [(found.start(), found[1], found[2]) for found in _FENCE.finditer(text)]
    rest = _FENCE.sub(lambda found: re.sub(r"[^\n]", "-", found[0]), text)
    loose = [(found.start(1), "indented", found[1]) for found in _INDENTED.finditer(rest)]
    return [
        Block(page, text.count("\n", 0, start) + 1, language, code)
        for start, language, code in sorted(fenced + loose)
    ]


def all_blocks(*languages: str) -> list[Block]:
    """The blocks of all pages, of these languages if any are given."""
    found = [block for page in PAGES for block in blocks_of(page)]
    return [block for block in found if not languages or block.language in languages]

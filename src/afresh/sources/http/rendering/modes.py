"""Decides which pages are rendered. With ``auto``, each class of paths of a host is decided by some pages.

At first, pages of a class are rendered, and compared with their plain answers: a page *needs* the browser if
more than a fifth of what it then says is not in the plain answer (runs of three words of the visible text).
The class is decided when ``_FEWEST`` pages agree, or else after ``_MOST`` pages. A class that needs no
browser is polled without it; then its audits are rendered too, only to compare. What was counted is halved
from time to time, so that a class that changes is decided anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from afresh.sources.http.hidden_changes import path_class
from afresh.sources.parsing.parse_budget import SMALL_BYTES
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.sources.similarity import share_of_new
from afresh.sources.text_decoding import decode
from afresh.sources.texts.main_text import visible_text

RenderMode: TypeAlias = Literal["never", "always", "auto"]
HowToFetch: TypeAlias = Literal["plain", "render", "compare"]
"""How a page is polled: ``compare`` renders it, but keeps the plain answer as its content."""

_FEWEST, _MOST = 5, 20
_NEEDED_SHARE = 0.1
_NEW_SHARE = 0.2
_MOST_CLASSES = 10_000
_ALWAYS_BESIDE = -1  # the ``small`` of ``ParserPool.parse`` by which even an empty page is parsed beside


def needs_browser(rendered: bytes, plain: bytes, plain_type: str = "text/html") -> bool:
    """Return whether a page, in UTF-8, says much that its plain answer of type ``plain_type`` does not.

    >>> needs_browser(b"<p>one two three four", b"<p>one two three four<script>x</script>")
    False
    >>> needs_browser(b"<div>one two three four", b"<div id=app></div>")
    True
    """
    pages = rendered.decode("utf-8", "replace"), decode(plain, plain_type)
    one, other = (visible_text(page).encode("utf-8", "replace") for page in pages)
    return share_of_new(one, other) > _NEW_SHARE


async def is_browser_needed(
    parsers: ParserPool, rendered: bytes, plain: bytes, plain_type: str, party: str
) -> bool:
    """Return ``needs_browser`` of these pages, from a parser process if either of them is large. ``party`` is
    the host, for a fair use of the processes."""
    small = SMALL_BYTES if len(plain) <= SMALL_BYTES else _ALWAYS_BESIDE
    return await parsers.parse(needs_browser, rendered, plain, plain_type, small=small, party=party)


@dataclass(frozen=True, slots=True)
class ClassRecord:
    """How many pages of a class were compared, and how many of them needed the browser. ``decided`` is None
    until the class is decided; then it says whether its pages are rendered."""

    compared: float = 0.0
    needed: float = 0.0
    decided: bool | None = None

    def count(self, *, needed: bool) -> ClassRecord:
        """Return the record with one more comparison.

        >>> record = ClassRecord()
        >>> for _ in range(5):
        ...     record = record.count(needed=False)
        >>> record.decided
        False
        """
        seen = ClassRecord(self.compared + 1, self.needed + needed, self.decided)
        agrees = seen.compared >= _FEWEST and seen.needed in (0.0, seen.compared)
        if agrees or seen.compared >= _MOST or self.decided is not None:
            seen = replace(seen, decided=seen.needed >= _NEEDED_SHARE * seen.compared)
        if seen.compared >= _MOST:
            seen = replace(seen, compared=seen.compared / 2, needed=seen.needed / 2)
        return seen


class RenderModes:
    """What was learned of the classes of paths of one source."""

    def __init__(self, mode: RenderMode) -> None:
        self._mode = mode
        self._classes: dict[str, ClassRecord] = {}

    def choose(self, url: str, *, audit: bool) -> HowToFetch:
        """Return how the page at ``url`` is polled."""
        if self._mode != "auto":
            return "render" if self._mode == "always" else "plain"
        record = self._classes.get(path_class(url), ClassRecord())
        if record.decided is None or record.decided:
            return "render"
        return "compare" if audit else "plain"

    @property
    def learns(self) -> bool:
        return self._mode == "auto"

    def learn(self, url: str, *, needed: bool) -> None:
        name = path_class(url)
        self._classes[name] = self._classes.pop(name, ClassRecord()).count(needed=needed)
        if len(self._classes) > _MOST_CLASSES:
            del self._classes[next(iter(self._classes))]

    def save(self) -> dict[str, tuple[float, float, bool | None]]:
        return {name: (one.compared, one.needed, one.decided) for name, one in self._classes.items()}

    def load(self, saved: Mapping[str, tuple[float, float, bool | None]]) -> None:
        """Add what an earlier process learned, except of classes that are known already."""
        for name, (compared, needed, decided) in saved.items():
            self._classes.setdefault(name, ClassRecord(compared, needed, decided))

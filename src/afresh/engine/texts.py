"""The main texts of copies, as plain text or Markdown, kept in the store with the contents they come from.

    with TextReader(store) as texts:
        print(texts.text_of(copy, "markdown"))

A text is taken from a content once, by a parser process, and then read from the store. It is taken anew if
another version of the libraries is installed, because they may find another text.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib.metadata import version
from typing import Self

from afresh.sources.parsing.parse_budget import ParseBudget, ParseBudgetError, budget_for_size
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.sources.texts.main_text import (
    NEVER_HERE,
    TextForm,
    check_text_extra,
    extract_text,
    require_text,
    text_kind,
)
from afresh.stores.store import Store
from afresh.values.errors import AfreshError, StoreError
from afresh.values.stored import Copy

_LONGER = 6.0  # a text may take longer here than in a poll, where others wait for it
_LIBRARIES = {"html": "trafilatura", "pdf": "pypdf"}


class TextReader:
    """Gives the texts of copies. It uses a parser process of its own while it is open."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parsers = ParserPool(1, _budget)

    def __enter__(self) -> Self:
        self._parsers.join()
        return self

    def __exit__(self, *_: object) -> None:
        self._parsers.leave()

    def text_of(self, copy: Copy, form: TextForm = "text") -> str:
        """Return the main text of a copy. Raise ``NoTextError`` if there is none in a content of this kind,
        ``UsageError`` if the extra ``text`` is not installed, and ``AfreshError`` if the content cannot be
        read within the parse budget."""
        found, media_type = copy.version, copy.version.media_type
        require_text(copy.content, media_type)
        kind = text_kind(copy.content, media_type)
        if kind == "plain":
            return extract_text(copy.content, media_type)
        check_text_extra()
        name = f"{form} {_LIBRARIES[kind]} {_version_of(_LIBRARIES[kind])}"
        kept = self._store.copies.text(found.hash, name)
        if kept is not None:
            return kept
        arguments = copy.content, media_type, form
        try:
            text = self._parsers.parse_here(extract_text, *arguments, small=NEVER_HERE)
        except ParseBudgetError as error:
            raise AfreshError(f"the text of this copy cannot be taken: {error}") from None
        with suppress(StoreError):  # a store that cannot be written now gives the text without keeping it
            self._store.copies.save_text(found.hash, name, text)
        return text


@cache
def _version_of(library: str) -> str:
    return version(library)


def _budget(size_bytes: int) -> ParseBudget:
    usual = budget_for_size(size_bytes)
    return ParseBudget(_LONGER * usual.processor_s, 2 * usual.memory_bytes)

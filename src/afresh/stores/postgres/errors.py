"""What PostgreSQL says, as errors of afresh: which store, what is wrong, what would help."""

from __future__ import annotations

import re

import psycopg

from afresh.values.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreMissingError,
    StoreReadOnlyError,
)

Words = tuple[type[StoreError], str]

_AWAY: Words = (StoreLockedError, "does not answer: the server stopped or the connection was lost; try again")
_BUSY: Words = (StoreLockedError, "is held by another process: try again when that one is done")
_PASSWORD: Words = (StoreMissingError, "cannot be opened: the server refused the user or the password")
_NO_DATABASE: Words = (StoreMissingError, "cannot be opened: the server has no such database")
_RIGHTS: Words = (StoreReadOnlyError, "may not be used so: the user lacks a right")
_FULL: Words = (StoreFullError, "has no space left: free some on the server's disk and go on")
_CROWDED: Words = (StoreLockedError, "has too many connections: close some, or raise max_connections")
_DAMAGED: Words = (StoreCorruptError, "is damaged: restore a backup")
_ALTERED: Words = (StoreCorruptError, "lacks tables or columns: somebody altered its schema")
_READ_ONLY: Words = (
    StoreReadOnlyError,
    "may be read but not written: the server or the session is read-only",
)
_MISSPELT: Words = (StoreError, "cannot be reached: an option in [store] url is misspelt")

_BY_STATE: dict[str, Words] = {
    "28P01": _PASSWORD,
    "28000": _PASSWORD,
    "3D000": _NO_DATABASE,
    "42501": _RIGHTS,
    "53100": _FULL,
    "53300": _CROWDED,
    "55P03": _BUSY,
    "40P01": _BUSY,
    "40001": _BUSY,
    "57014": _BUSY,
    "57P01": _AWAY,
    "57P02": _AWAY,
    "57P03": _AWAY,
    "57P05": _AWAY,
    "25006": _READ_ONLY,
    "XX001": _DAMAGED,
    "XX002": _DAMAGED,
    "42P01": _ALTERED,
    "42703": _ALTERED,
    "3F000": _ALTERED,
}
# libpq tells no code for a connection that never was, only the server's words.
_BY_WORDS: tuple[tuple[str, Words], ...] = (
    (r"authentication failed|no password supplied|role .* does not exist|pg_hba\.conf", _PASSWORD),
    (r"database .* does not exist", _NO_DATABASE),
    (r"too many (clients|connections)|remaining connection slots", _CROWDED),
    (r"permission denied for database", _RIGHTS),
    (r"invalid (URI query parameter|connection option)", _MISSPELT),
)


def translate_error(error: psycopg.Error, store: str) -> StoreError:
    """The error in words; the server's own follow where they tell more."""
    kind, words = _words(error)
    told = _first_line(error)
    return kind(f"{store} {words}" + (f" ({told})" if told else ""))


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone: nothing is wrong with what was asked."""
    return _words(error) is _AWAY


def _words(error: psycopg.Error) -> Words:
    state = error.sqlstate
    if state is not None:
        return _BY_STATE.get(state) or (_AWAY if state.startswith("08") else (StoreError, "failed"))
    for pattern, words in _BY_WORDS:
        if re.search(pattern, str(error)):
            return words
    return _AWAY if isinstance(error, psycopg.OperationalError) else (StoreError, "failed")


def _first_line(error: psycopg.Error) -> str:
    # Without a code the text is libpq's: several lines, the last attempt's words at the end of the first.
    text = error.diag.message_primary or str(error).strip().split("\n")[0]
    return " ".join(text.split())

"""Translates errors of PostgreSQL into errors of afresh, which name the store, the problem and a remedy."""

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

Meaning = tuple[type[StoreError], str]

_AWAY: Meaning = (
    StoreLockedError,
    "does not answer: the server stopped or the connection was lost; try again",
)
_BUSY: Meaning = (StoreLockedError, "is held by another process: try again when that one is done")
_PASSWORD: Meaning = (StoreMissingError, "cannot be opened: the server refused the user or the password")
_NO_DATABASE: Meaning = (StoreMissingError, "cannot be opened: the server has no such database")
_RIGHTS: Meaning = (StoreReadOnlyError, "may not be used so: the user lacks a right")
_FULL: Meaning = (StoreFullError, "has no space left: free some on the server's disk and go on")
_CROWDED: Meaning = (StoreLockedError, "has too many connections: close some, or raise max_connections")
_DAMAGED: Meaning = (StoreCorruptError, "is damaged: restore a backup")
_ALTERED: Meaning = (StoreCorruptError, "lacks tables or columns: somebody altered its schema")
_READ_ONLY: Meaning = (
    StoreReadOnlyError,
    "may be read but not written: the server or the session is read-only",
)
_MISSPELT: Meaning = (StoreError, "cannot be reached: an option in [store] url is misspelt")

_STATES: dict[tuple[str, ...], Meaning] = {
    ("28P01", "28000"): _PASSWORD,
    ("3D000",): _NO_DATABASE,
    ("42501",): _RIGHTS,
    ("53100",): _FULL,
    ("53300",): _CROWDED,
    ("55P03", "40P01", "40001", "57014"): _BUSY,
    ("25P03", "57P01", "57P02", "57P03", "57P05"): _AWAY,
    ("25006",): _READ_ONLY,
    ("XX001", "XX002"): _DAMAGED,
    ("42P01", "42703", "3F000"): _ALTERED,
}
_BY_STATE = {state: meaning for states, meaning in _STATES.items() for state in states}
# If no connection could be made, libpq gives no error code, only the server's message.
_BY_TEXT: tuple[tuple[str, Meaning], ...] = (
    (r"authentication failed|no password supplied|role .* does not exist|pg_hba\.conf", _PASSWORD),
    (r"database .* does not exist", _NO_DATABASE),
    (r"too many (clients|connections)|remaining connection slots", _CROWDED),
    (r"permission denied for database", _RIGHTS),
    (r"invalid (URI query parameter|connection option)", _MISSPELT),
)


def translate_error(error: psycopg.Error, store: str) -> StoreError:
    """Return the error of afresh for an error of PostgreSQL; its text ends with the server's own message."""
    kind, text = _meaning(error)
    # If there is no message of the server, the text is from libpq, and its first line has the reason.
    detail = " ".join((error.diag.message_primary or str(error).strip().split("\n")[0]).split())
    return kind(f"{store} {text}" + (f" ({detail})" if detail else ""))


def is_lost(error: psycopg.Error) -> bool:
    """Return whether the error means that the connection was lost or the server stopped."""
    return _meaning(error) is _AWAY


def _meaning(error: psycopg.Error) -> Meaning:
    state = error.sqlstate
    if state is not None:
        return _BY_STATE.get(state) or (_AWAY if state.startswith("08") else (StoreError, "failed"))
    for pattern, meaning in _BY_TEXT:
        if re.search(pattern, str(error)):
            return meaning
    return _AWAY if isinstance(error, psycopg.OperationalError) else (StoreError, "failed")

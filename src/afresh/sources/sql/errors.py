"""Errors of databases, each described in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from afresh.values.errors import AfreshError
from afresh.values.formatting import one_line

if TYPE_CHECKING:
    import psycopg

Hide: TypeAlias = Callable[[str], str]
"""A function that hides the secrets in a text."""

_REASONS = {
    "28P01": "the password is wrong",
    "28000": "the server does not allow this user to connect from here",
    "3D000": "there is no such database",
    "42501": "the role has no rights to it",
    "42P01": "there is no such table or view",
    "42703": "there is no such column",
    "42601": "the query is not valid SQL",
    "57014": "took longer than its time-out allows",
    "55P03": "waited for a lock longer than its time-out allows",
    "25006": "tried to write, but the session is read-only",
    "53100": "the server's disk is full",
    "53300": "the server accepts no more connections",
    "57P01": "the server is shutting down",
    "57P03": "the server is starting up",
    "22P02": "the key is no value of the key's type",
    "22003": "the key is out of the range of the key's type",
}
_KEY_STATES = ("22P02", "22003", "22007", "22008", "22021")
_CONNECTION_STATES = ("08", "28", "3D", "57P", "53")
_LOGIN = {
    "password authentication failed": _REASONS["28P01"],
    "no password supplied": "a password is needed",
    "does not exist": "there is no such database or role",
    "starting up": _REASONS["57P03"],
}


class SqlError(AfreshError):
    """A statement failed. Code in ``sources`` catches this error and makes it the ``problem`` of a poll.
    ``is_connection_lost`` is True if there is no connection, so that polls of other items would fail too.
    ``state`` is the SQLSTATE code, empty if there is none."""

    def __init__(self, message: str, *, is_connection_lost: bool = False, state: str = "") -> None:
        super().__init__(message)
        self.is_connection_lost, self.state = is_connection_lost, state

    @property
    def is_key_error(self) -> bool:
        """Whether one of the keys in the statement caused the error."""
        return self.state in _KEY_STATES


def postgres_error(error: psycopg.Error, hide: Hide, *, connected: bool) -> SqlError:
    """Return a PostgreSQL error as a ``SqlError``. ``connected`` is True if the connection is still open.
    ``hide`` removes secrets from the message."""
    state = error.sqlstate or ""
    said = one_line(hide(str(error.diag.message_primary or error)).rpartition("FATAL: ")[2])
    reason = _REASONS.get(state, "")
    if not reason and not connected:
        # For a refused login the client library gives no SQLSTATE, only a text.
        reason = next((words for mark, words in _LOGIN.items() if mark in said), "no connection")
    is_lost = not connected or state.startswith(_CONNECTION_STATES)
    return SqlError(f"{reason}: {said}" if reason else said, is_connection_lost=is_lost, state=state)

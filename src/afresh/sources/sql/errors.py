"""What a database refused, in one line for a person."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from afresh.values.errors import AfreshError

if TYPE_CHECKING:
    import psycopg

Hide: TypeAlias = Callable[[str], str]
"""Blanks secrets out of a text."""

_LONGEST_WORDS = 200
_REASONS = {
    "28P01": "the password is wrong",
    "28000": "the server lets this user in from nowhere that we are",
    "3D000": "there is no such database",
    "42501": "the role has no rights to it",
    "42P01": "there is no such table or view",
    "42703": "there is no such column",
    "42601": "the query is not valid SQL",
    "57014": "took longer than its time-out allows",
    "55P03": "waited for a lock longer than its time-out allows",
    "25006": "tried to write, but the session is read-only",
    "53100": "the server's disk is full",
    "53300": "the server takes no more connections",
    "57P01": "the server is shutting down",
    "57P03": "the server is starting up",
    "22P02": "the key is no value of the key's type",
    "22003": "the key is out of the range of the key's type",
}
_ABOUT_KEYS = ("22P02", "22003", "22007", "22008", "22021")
_ABOUT_CONNECTIONS = ("08", "28", "3D", "57P", "53")


class SqlError(AfreshError):
    """A statement that failed; never leaves ``sources``, where it becomes a poll's ``problem``.

    ``lost``: the connection is gone or was never made, so other items would fare no better. ``state`` is the
    SQLSTATE, empty where there is none. ``about_keys``: one of the keys asked for is to blame.
    """

    def __init__(self, words: str, *, lost: bool = False, state: str = "") -> None:
        super().__init__(words)
        self.lost, self.state = lost, state

    @property
    def about_keys(self) -> bool:
        """Whether a key is to blame."""
        return self.state in _ABOUT_KEYS


def postgres_error(error: psycopg.Error, hide: Hide, *, connected: bool) -> SqlError:
    """What PostgreSQL, or the way to it, said; ``connected``: there was a connection, and there is still."""
    state = error.sqlstate or ""
    said = one_line(hide(str(error.diag.message_primary or error)).rpartition("FATAL: ")[2])
    reason = _REASONS.get(state, "")
    if not reason and not connected:
        # The client library is told of a refused login in words alone.
        reason = next((words for mark, words in _LOGIN.items() if mark in said), "no connection")
    lost = not connected or state.startswith(_ABOUT_CONNECTIONS)
    return SqlError(f"{reason}: {said}" if reason else said, lost=lost, state=state)


_LOGIN = {
    "password authentication failed": _REASONS["28P01"],
    "no password supplied": "a password is needed",
    "does not exist": "there is no such database or role",
    "starting up": _REASONS["57P03"],
}


def one_line(text: str) -> str:
    """The text without line breaks, of bearable length.

    >>> one_line("ERROR:  no\\n  such thing")
    'ERROR: no such thing'
    """
    return " ".join(text.split())[:_LONGEST_WORDS]

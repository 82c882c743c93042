"""Creates and finds the token that changes require. Only its owner can read its file in the project."""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path

from afresh.sources.secrets import Resolver, resolve
from afresh.values.errors import OutputError, UsageError

TOKEN_FILE = "web.token"
_SHORTEST = 16


def make_token_file(folder: Path) -> Path:
    """Write a new token to the project folder, unless there is one already, and return the file's path."""
    path = folder / TOKEN_FILE
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
    return path


def find_token(setting: str, folder: Path, resolver: Resolver) -> str | None:
    """Return the token from ``setting`` (the token, or ``env:NAME``). If that is empty, return the token in
    the project's file, or None if there is no file. ``resolver`` reads environment variables."""
    if setting:
        return _check(resolve("[web] token", setting, resolver).reveal(), "[web] token")
    path = folder / TOKEN_FILE
    try:
        return _check(path.read_text(encoding="utf-8").strip(), str(path))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def is_token(given: str, token: str) -> bool:
    """Return whether two tokens are equal. The time that this takes does not reveal where they differ.

    >>> is_token("a" * 20, "a" * 20), is_token("ä", "a" * 20)
    (True, False)
    """
    return hmac.compare_digest(given.encode(errors="replace"), token.encode())


def _check(token: str, where: str) -> str:
    if len(token) < _SHORTEST:
        raise UsageError(f"{where}: the token is shorter than {_SHORTEST} characters and could be guessed")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(f"{where}: the token must be printable ASCII without spaces to fit into a header")
    return token

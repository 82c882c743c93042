"""Make texts from remote systems storable, so that no text can make a commit to the database fail."""

from __future__ import annotations

from collections.abc import Iterable

from afresh.values.errors import InputError


def replace_unstorable(text: str) -> str:
    """Return the text with every character replaced that UTF-8 cannot encode or a database cannot store.

    >>> replace_unstorable("text/html"), replace_unstorable("caf\\udce9 \\0")
    ('text/html', 'caf? \\ufffd')
    """
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def is_storable(text: str) -> bool:
    """Return whether a store can hold the text without replacements.

    >>> is_storable("café"), is_storable("caf\\udce9")
    (True, False)
    """
    return replace_unstorable(text) == text


def check_storable(what: str, texts: Iterable[str]) -> None:
    """Raise ``InputError`` if a store cannot hold one of ``texts``; ``what`` names the texts in the message.

    >>> check_storable("a worker's name", ["a\\0"])
    Traceback (most recent call last):
    afresh.values.errors.InputError: a worker's name is 'a\\x00': must be text that can be stored as UTF-8
    """
    for text in texts:
        if not is_storable(text):
            raise InputError(f"{what} is {text!r}: must be text that can be stored as UTF-8")

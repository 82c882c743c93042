"""Texts from outside that a database can hold: what a server sends must never make a commit fail."""

from __future__ import annotations

from collections.abc import Iterable

from afresh.values.errors import InputError


def replace_unstorable(text: str) -> str:
    """Return the text with replacements for the characters that UTF-8 or a database cannot hold.

    >>> replace_unstorable("text/html"), replace_unstorable("caf\\udce9 \\0")
    ('text/html', 'caf? \\ufffd')
    """
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def is_storable(text: str) -> bool:
    """Return whether a store can hold the text as it is.

    >>> is_storable("café"), is_storable("caf\\udce9")
    (True, False)
    """
    return replace_unstorable(text) == text


def check_storable(what: str, texts: Iterable[str]) -> None:
    """Refuse texts that no store can hold as they are; ``what`` says what they are.

    >>> check_storable("a worker's name", ["a\\0"])
    Traceback (most recent call last):
    afresh.values.errors.InputError: a worker's name is 'a\\x00': must be text that can be stored as UTF-8
    """
    for text in texts:
        if not is_storable(text):
            raise InputError(f"{what} is {text!r}: must be text that can be stored as UTF-8")

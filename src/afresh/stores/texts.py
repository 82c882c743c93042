"""Texts from strangers, made fit to be stored: a server's words must never make a commit fail."""

from __future__ import annotations

from collections.abc import Iterable

from afresh.values.errors import InputError


def storable(text: str) -> str:
    """The text with a replacement for what UTF-8 or a database cannot hold.

    >>> storable("text/html"), storable("caf\\udce9 \\0")
    ('text/html', 'caf? \\ufffd')
    """
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def is_storable(text: str) -> bool:
    """Whether a store could hold it as it is.

    >>> is_storable("café"), is_storable("caf\\udce9")
    (True, False)
    """
    return storable(text) == text


def check_storable(what: str, texts: Iterable[str]) -> None:
    """Refuse texts that no store could hold as they are.

    >>> check_storable("a worker's name", ["a\\0"])
    Traceback (most recent call last):
    afresh.values.errors.InputError: a worker's name is 'a\\x00': must be text that can be stored as UTF-8
    """
    for text in texts:
        if not is_storable(text):
            raise InputError(f"{what} is {text!r}: must be text that can be stored as UTF-8")

"""Texts from strangers, made fit to be stored: a server's words must never make a commit fail."""

from __future__ import annotations


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

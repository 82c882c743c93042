"""Secrets, such as headers, tokens, cookies and proxies, that must not appear in logs, errors or exports.

A setting ``env:NAME`` stands for the secret with that name. Callers pass in the resolver that returns the
secret for a name, because only the command line reads the environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from afresh.values.errors import UsageError
from afresh.values.printable_text import DOTS

Resolver: TypeAlias = Callable[[str], str | None]
"""A function that returns the value of the secret with a given name, or None if there is no such secret."""

HIDDEN = DOTS
_NAMED = re.compile(r"(?:^|(?<=\s))env:(?P<name>\w+)$")
_ANYWHERE = re.compile(r"(?<!\w)env:\w")
_SHORTEST = 4  # hiding a shorter secret would hide parts of ordinary words


class Secret:
    """A text that only ``reveal`` returns; every other representation hides it.

    >>> token = Secret("hunter2")
    >>> token, str(token), f"{token}"
    (Secret(•••), '•••', '•••')
    >>> token.reveal()
    'hunter2'
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __str__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> str:
        raise TypeError("a Secret is not pickled: it would be readable in the file")


def resolve(setting: str, value: str, resolver: Resolver) -> Secret:
    """Return ``value`` as a secret. If it ends with ``env:NAME``, that part is replaced by the named secret.
    ``setting`` is the name of the setting, for error messages.

    >>> resolve("token", "Bearer env:TOKEN", {"TOKEN": "hunter2"}.get).reveal()
    'Bearer hunter2'
    >>> resolve("token", "env:TOKEM", {"TOKEN": "hunter2"}.get)
    Traceback (most recent call last):
    afresh.values.errors.UsageError: token: the environment has no variable TOKEM
    >>> resolve("proxy", "http://me:env:WORD@proxy.test:3128", {"WORD": "hunter2"}.get)
    Traceback (most recent call last):
    afresh.values.errors.UsageError: proxy: env:NAME is understood only as the whole value or its last word
    """
    named = _NAMED.search(value)
    if named is None:
        if _ANYWHERE.search(value):  # the text env:NAME itself would be sent
            raise UsageError(f"{setting}: env:NAME is understood only as the whole value or its last word")
        return Secret(value)
    found = resolver(named["name"])
    if found is None:
        raise UsageError(f"{setting}: the environment has no variable {named['name']}")
    return Secret(value[: named.start()] + found)


def redactor(secrets: Iterable[Secret]) -> Callable[[str], str]:
    """Return a function that replaces each secret, and each word of a secret, by dots in a text.

    >>> redactor([Secret("Bearer hunter2")])("server said: no user hunter2")
    'server said: no user •••'
    """
    words = {word for secret in secrets for word in (secret.reveal(), *secret.reveal().split())}
    texts = sorted((word for word in words if len(word) >= _SHORTEST), key=len, reverse=True)

    def hide(text: str) -> str:
        for secret in texts:
            text = text.replace(secret, HIDDEN)
        return text

    return hide

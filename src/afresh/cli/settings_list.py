"""Options that hold several settings: ``--drift sd=1,horizon=90d``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from afresh.values.errors import UsageError, one_of

Readers: TypeAlias = Mapping[str, tuple[Callable[[str], float], float]]


def parse_settings(option: str, text: str, readers: Readers) -> dict[str, float]:
    """The settings in ``text``; ``readers`` gives for each name how it is read, and what it is if not given.

    >>> parse_settings("--season", "week=0.5", {"day": (plain_number, 0.0), "week": (plain_number, 0.0)})
    {'day': 0.0, 'week': 0.5}
    >>> parse_settings("--season", "weak=0.5", {"week": (plain_number, 0.0)})
    Traceback (most recent call last):
    afresh.values.errors.UsageError: unknown setting of --season 'weak': did you mean 'week'? One of week
    """
    found = {name: default for name, (_, default) in readers.items()}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        one_of(f"setting of {option}", name, readers)
        if not equals:
            raise UsageError(f"{option} {text!r}: write {name}=VALUE")
        try:
            found[name] = readers[name][0](value)
        except UsageError as error:
            raise UsageError(f"{option}, {name}: {error}") from None
    return found


def plain_number(text: str) -> float:
    """A finite number.

    >>> plain_number("x")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: 'x' is not a number
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"{text!r} is not a number")
    return value

"""How often an item must be missing before it is gone: pages come back, deploys break sites for an hour."""

from __future__ import annotations

from dataclasses import dataclass

_GONE_ON_PURPOSE = 410


@dataclass(frozen=True, slots=True)
class Patience:
    """Gone after ``polls`` misses in a row over at least ``time_s``; a 410 says "for good" and needs two."""

    polls: int = 3
    time_s: float = 86400.0


def is_gone(status: int | None, misses: int, silent_s: float, patience: Patience) -> bool:
    """Whether an item is gone: ``misses`` in a row with this one, ``silent_s`` since it was last there.

    >>> is_gone(404, 3, 3600.0, Patience()), is_gone(404, 3, 2 * 86400.0, Patience())
    (False, True)
    >>> is_gone(410, 1, 60.0, Patience()), is_gone(410, 2, 60.0, Patience())
    (False, True)
    """
    if status == _GONE_ON_PURPOSE:
        return misses >= min(2, patience.polls)
    return misses >= patience.polls and silent_s >= patience.time_s

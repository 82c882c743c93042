"""How long a round of queries takes (Yang et al. 2010, §4.3); the order in it is in ``papers.yang``."""

from __future__ import annotations


def round_length(queries: int, interval: float, pause: float = 0.0) -> float:
    """kI + τ: how long one round takes, with the pause after it (Algorithm 1).

    >>> round_length(10, 0.5, pause=2.0)
    7.0
    """
    return queries * interval + pause

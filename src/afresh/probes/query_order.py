"""The length of a round of queries (Yang et al. 2010, §4.3); ``papers.yang`` has the order of its queries."""

from __future__ import annotations


def round_length(queries: int, interval: float, pause: float = 0.0) -> float:
    """Return the time of one round: queries·interval + pause.
    ``interval`` is the time between two queries, ``pause`` the time after the last one. In Algorithm 1 of
    Yang et al. it is kI + τ.

    >>> round_length(10, 0.5, pause=2.0)
    7.0
    """
    return queries * interval + pause

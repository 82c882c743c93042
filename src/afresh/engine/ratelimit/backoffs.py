"""The back-offs of groups after failures, as the store keeps them for all workers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import astuple

from afresh.sources.capabilities import GroupBackoff


def pack_backoffs(rests: Iterable[GroupBackoff]) -> bytes:
    """Return the back-offs as the store keeps them."""
    return json.dumps([astuple(rest) for rest in rests]).encode()


def unpack_backoffs(packed: bytes | None) -> tuple[GroupBackoff, ...]:
    """Return the back-offs that the store keeps.

    >>> unpack_backoffs(b'[["a.test", 5.0, 2, "503 Service Unavailable"]]')
    (GroupBackoff(group='a.test', until_s=5.0, failures=2, why='503 Service Unavailable'),)
    """
    return tuple(GroupBackoff(*each) for each in json.loads(packed)) if packed else ()

"""The links of pages, for sources that follow links: what a poll found, and what the store keeps of it."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FoundLinks:
    """The keys of the items to which a page links, as a poll found them. ``gained`` is how many of them were
    new items; it is 0 at the first reading of a page, which says nothing about how often new ones appear.
    ``traps`` are addresses that were left out because they look like some of endlessly many."""

    keys: tuple[str, ...]
    gained: int = 0
    traps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageLinks:
    """What the store knows of the links of the item ``item_id``.

    ``depth`` is the number of links from a start page to it, ``chain`` the number of pages of the same form
    of address that lead to it one after the other. ``readings`` is how often its links were read, and
    ``gained`` the number of new items that the readings after the first found. ``links`` are the keys to
    which it links, None before the first reading. ``unlinked_s`` is since when no page links to it."""

    item_id: int
    depth: int = 0
    chain: int = 0
    readings: int = 0
    gained: int = 0
    unlinked_s: float | None = None
    links: tuple[str, ...] | None = None

    @property
    def expected_gain(self) -> float:
        """How many new items a reading is expected to find: the mean, with one more reading without any.

        >>> PageLinks(1, readings=4, gained=6).expected_gain
        1.5
        """
        return self.gained / max(self.readings, 1)


def pack_keys(keys: tuple[str, ...]) -> bytes:
    """Return keys in the form in which a store keeps them.

    >>> unpack_keys(pack_keys(("https://a.test/", "https://a.test/b")))
    ('https://a.test/', 'https://a.test/b')
    """
    return zlib.compress(json.dumps(keys, ensure_ascii=True, separators=(",", ":")).encode(), 1)


def unpack_keys(data: bytes) -> tuple[str, ...]:
    return tuple(json.loads(zlib.decompress(data)))

"""The result of one poll of an item.

A source raises no exception for problems of the remote side. For a missing page, a host that does not answer
or a decompression bomb in the body it returns a ``Fetched`` whose ``problem`` describes what happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

FetchedKind: TypeAlias = Literal["content", "unchanged", "gone", "refused", "failed"]
"""The kinds of result that a poll can have.

``content``    the content differs from the stored copy, or there was no copy yet
``unchanged``  the stored copy is up to date: the server said so, or the normalised content has the same hash
``gone``       the source says that the item does not exist (404, 410); several such answers end its polls
``refused``    the item may not be polled: robots.txt, a private address, 401, 403, 451, a login page
``failed``     the poll did not work: a time-out, a broken body, 429, 5xx; it says nothing about the item
"""

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class FoundLinks:
    """The keys of the items to which a page links, as a poll found them. ``gained`` is how many of them were
    new items; it is 0 at the first reading of a page, which says nothing about how often new ones appear.
    ``traps`` are addresses that were left out because they look like some of endlessly many."""

    keys: tuple[str, ...]
    gained: int = 0
    traps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of one poll. Only the kinds ``content`` and ``unchanged`` show whether the item changed.

    ``content``        the decompressed bytes; only with kind ``content``.
    ``normal_hash``    the hash of the normalised content; None if no content was read.
    ``comparable``     False if the stored copy was normalised with other settings. Different content is then
                       a new baseline for comparisons and no evidence of a change.
    ``validators``     ETag, Last-Modified and the like, to be passed to the next poll verbatim. They replace
                       the stored validators only if the kind is ``content`` or ``unchanged``.
    ``modified_s``     the time of the last change according to the source (Unix seconds). None if the source
                       states no time, or if times that it stated earlier were found to be wrong.
    ``count``          the number of changes since the previous poll according to the source; None if unknown.
    ``verified_s``     the time of the last poll that compared the content (Unix seconds), if polls since then
                       said "unchanged" wrongly; they no longer count. Else None.
    ``requests``       the number of requests of this poll, including robots.txt, redirects and retries.
    ``bytes``          the bytes received; ``seconds`` is the duration of the requests, without waiting.
    ``retry_after_s``  the source asks not to be polled for this many seconds.
    ``put_off``        True if no request was sent because the item's host may not receive one yet.
    ``moved_to``       the new address of the item after permanent redirects; None after temporary ones.
    ``status``         the last HTTP status, if there is one.
    ``problem``        what went wrong, in one line without secrets; empty for ``content``, ``unchanged``.
    ``links``          the items to which the page links, if the source follows links and read them.
    ``for_good``       True if a refusal is final, so that the item is not polled again.

    >>> Fetched("failed", problem="no answer within 10 s").is_successful
    False
    """

    kind: FetchedKind
    content: bytes | None = field(default=None, repr=False)
    media_type: str = ""
    normal_hash: bytes | None = None
    comparable: bool = True
    validators: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    modified_s: float | None = None
    count: int | None = None
    verified_s: float | None = None
    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0
    retry_after_s: float | None = None
    moved_to: str | None = None
    status: int | None = None
    problem: str = ""
    put_off: bool = False
    links: FoundLinks | None = None
    for_good: bool = False

    @property
    def is_successful(self) -> bool:
        """Whether the poll succeeded, so that it shows whether the content changed."""
        return self.kind in ("content", "unchanged")

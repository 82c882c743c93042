"""What one poll of an item brought back.

A source raises no exception for what may happen outside: a page that is gone, a host that stalls, a
decompression bomb in the body all come back as a ``Fetched`` whose ``problem`` says what happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

FetchedKind: TypeAlias = Literal["content", "unchanged", "gone", "refused", "failed"]
"""What a poll can bring.

``content``    a copy that differs from ours, or the first one
``unchanged``  our copy is still right: the server said so, or the normalised content has the same hash
``gone``       the source says that there is no such item (404, 410); several such answers end its polls
``refused``    we may not poll it: robots.txt, a private address, 401, 403, 451, a login page
``failed``     it did not work this time: time-outs, broken bodies, 429, 5xx; nothing is known of the item
"""

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of one poll; only the kinds ``content`` and ``unchanged`` say something about change.

    ``content``        the bytes served, decompressed; only with kind ``content``.
    ``normal_hash``    hash of the normalised content; None where no content was read.
    ``comparable``     False where the copy held was normalised by other settings: then content that
                       differs is a new baseline and no evidence of a change.
    ``validators``     what to hand back, verbatim, at the next poll. Replaces the old ones wherever the
                       kind is ``content`` or ``unchanged``; other kinds leave them as they were.
    ``modified_s``     when the source says the item last changed (Unix seconds), and only while that
                       source has been honest; else None.
    ``requests``       every request this poll sent: robots.txt, redirects and retries included.
    ``bytes``          what came over the wire; ``seconds`` how long the requests took, without waiting.
    ``retry_after_s``  the source asks not to be polled for so long.
    ``put_off``        the item itself was not asked for, since its host may not be asked yet.
    ``moved_to``       where the item lives now, after permanent redirects only.
    ``status``         the last HTTP status, where there is one.
    ``problem``        in words, one line, nothing secret; empty for content and unchanged.

    >>> Fetched("failed", problem="no answer within 10 s").tells
    False
    """

    kind: FetchedKind
    content: bytes | None = field(default=None, repr=False)
    media_type: str = ""
    normal_hash: bytes | None = None
    comparable: bool = True
    validators: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    modified_s: float | None = None
    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0
    retry_after_s: float | None = None
    moved_to: str | None = None
    status: int | None = None
    problem: str = ""
    put_off: bool = False

    @property
    def tells(self) -> bool:
        """Whether this poll says anything about the item's content."""
        return self.kind in ("content", "unchanged")

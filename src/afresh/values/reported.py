"""A poll that another program made and reports, and the answer to the report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

ReportResult: TypeAlias = Literal["recorded", "known", "conflict", "refused", "invalid"]
"""What became of a reported poll.

``recorded``  it was recorded now, or was recorded by an earlier report with the same lease
``known``     a poll of the item at this time was recorded before
``conflict``  its lease is not the item's newest one, because the item was lent again or polled since
``refused``   another worker is polling the item, or the item was removed meanwhile
``invalid``   the report itself is wrong
"""

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Reported:
    """One poll that another program made. ``time_s`` is in Unix seconds, ``lease`` is the token of the lease,
    and ``row`` is the number of the poll in the input, for error messages.

    ``changed``        whether the item changed since its last poll; or give ``content``.
    ``content``        the bytes that were fetched, of the type ``media_type``.
    ``count``          the number of changes since the last poll, if the program knows it.
    ``modified_s``     the time of the last change according to the source (Unix seconds).
    ``status``         the HTTP status. One without content (304, 404, 429, …) needs nothing else.
    ``failure``        why there is no answer, in one line. ``dns``, ``connect``, ``tls``, ``timeout`` or
    ``protocol`` means that the whole host cannot be reached; ``refused: …`` that the item may not be polled.
    ``retry_after_s``  the seconds for which the host asks to be left alone (Retry-After).
    ``bytes``          the bytes received; ``seconds`` is the duration of the request.
    ``validators``     the new ``etag`` and ``last-modified``, as the server sent them.
    ``url``            the URL that answered, if there were redirects; empty if it is the item's own.
    ``source``         the source of the item; needed if several sources have an item with this key.
    """

    item: str
    time_s: float
    changed: bool | None = None
    content: bytes | None = field(default=None, repr=False)
    media_type: str = ""
    lease: int | None = None
    row: int = 0
    count: int | None = None
    modified_s: float | None = None
    status: int | None = None
    failure: str = ""
    retry_after_s: float | None = None
    bytes: int = 0
    seconds: float = 0.0
    validators: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    url: str = ""
    source: str | None = None


@dataclass(frozen=True, slots=True)
class ReportAnswer:
    """The answer to one reported poll. ``problem`` says in words why it was not recorded. After a recorded
    poll, ``changed`` is whether the item had changed (None if the poll failed), ``status`` is the status of
    the item, and ``next_poll_s`` the Unix time of its next poll, None if there will be none.

    >>> answer = ReportAnswer("a", 7, "recorded", changed=True, status="active", next_poll_s=9.0)
    >>> ReportAnswer.from_text("a", 7, answer.to_text()) == answer
    True
    """

    item: str
    lease: int | None
    result: ReportResult
    problem: str = ""
    changed: bool | None = None
    status: str = ""
    next_poll_s: float | None = None

    def to_text(self) -> str:
        """Return the answer as JSON, without item and lease, under which a store keeps it."""
        kept = asdict(self)
        return json.dumps({name: kept[name] for name in kept if name not in ("item", "lease")})

    @classmethod
    def from_text(cls, item: str, lease: int | None, text: str) -> ReportAnswer:
        return cls(item, lease, **json.loads(text))

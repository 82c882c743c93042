"""A lease: the right to poll one item until a time, with everything that its source needs for the poll."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from afresh.values.items import Status


@dataclass(frozen=True, slots=True)
class Lease:
    """One item, leased to one worker until ``until_s``.

    ``token`` is a fencing token: a later lease of the item has a larger token, and a store commits only the
    outcome of the newest lease. ``leased_s`` is the time at which the lease began.
    ``validators`` are those of the last poll, verbatim (``etag``, ``last-modified``, …).
    ``content_hash`` is the hash of the newest copy's normalised content, ``None`` while there is no copy.
    ``polled_s`` is the time of the last successful poll, ``failures`` the number of failed polls since then.
    ``belief`` is what the policy has learned about the item's change rate; empty before the first poll.
    ``selector`` is the item's own selector; if it is empty, the source's selectors apply.
    ``listed`` is True if a listing named the item and the user did not add it.
    ``worker`` names the engine that holds the lease; empty for programs that fetch the item themselves. These
    send their request at ``not_before_s`` or later, so that the delays between requests to a host are kept;
    the policy polls items of a higher ``weight`` more often."""

    item_id: int
    key: str
    source: str
    group: str
    token: int
    until_s: float
    leased_s: float = 0.0
    validators: Mapping[str, str] = field(default_factory=dict)
    content_hash: bytes | None = None
    polled_s: float | None = None
    status: Status = "active"
    failures: int = 0
    belief: bytes = b""
    min_interval_s: float = 0.0
    max_interval_s: float = math.inf
    labels: Mapping[str, str] = field(default_factory=dict)
    selector: str = ""
    worker: str = ""
    listed: bool = False
    weight: float = 1.0
    not_before_s: float = -math.inf

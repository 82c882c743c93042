"""A lease: the right to poll one item for a while, and what its source needs to poll it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from afresh.values.items import Status


@dataclass(frozen=True, slots=True)
class Lease:
    """One item, leased to one worker until ``until_s``.

    ``token`` is a fencing token: a later lease of the item has a larger one, and only the newest can commit.
    ``validators`` are those of the last poll, verbatim (``etag``, ``last-modified``, …).
    ``content_hash`` is the hash of the newest copy's normalised content, ``None`` while there is none.
    ``polled_s`` is the last poll that told something, ``failures`` counts those in a row that did not.
    ``belief`` is the policy's rate state, empty before the first poll.
    ``selector`` is the item's own, empty where that of its source holds.
    ``worker`` is the engine that holds the lease, empty for programs that fetch themselves.
    """

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

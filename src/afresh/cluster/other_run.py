"""Finds out whether another run of the same cluster goes on, in whichever Ray cluster."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from afresh.cluster.layout import read_last_seen
from afresh.cluster.ray_session import ClusterError
from afresh.engine.logs import log_event
from afresh.stores.store import Store
from afresh.values.clock import Clock

_LOOK_EVERY_S = 0.5


def refuse_second_run(store: Store, clock: Clock, pause: Callable[[float], object] | None = None) -> None:
    """Raise ``ClusterError`` if another run of the project whose own ``store`` this is goes on.

    A run that ends in order leaves no trace. If one was killed, or its machine was lost, its last sign is
    some seconds old: then this waits until it is old enough, or until there is a new one. ``pause`` waits
    for that many seconds."""
    pause = pause or threading.Event().wait  # an event that is never set: signals can interrupt it
    seen = read_last_seen(store, clock.now_s())
    if seen is None:
        return
    words = "another run was seen just now: waiting to see whether it goes on"
    log_event(logging.INFO, words, ray=seen.address)
    while True:
        pause(_LOOK_EVERY_S)
        later = read_last_seen(store, clock.now_s())
        if later is None:
            return
        if later.time_s > seen.time_s:
            where = f"with Ray at {later.address}"
            raise ClusterError(f"a run of this project goes on already, {where}: stop it first")

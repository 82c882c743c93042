"""A consumer killed at random moments, while the engine is killed at others, sees every committed change."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.engine.living import LivingSite, engine_for
from tests.servers.quick_afresh import QuickAfresh, QuickProcess
from tests.waiting import until

from afresh.values.changes import read_feed_cursor

pytestmark = pytest.mark.waits

SETTINGS = """
[budget]
requests = "200/s"
[run]
lease = "1s"
[store]
versions = 1000
[[source]]
name = "web"
delay = "0s"
concurrency = 4
allow_private = true
min_interval = 0
"""
# Writes down what it gets: one write for each change, so that a kill leaves whole lines.
CONSUMER = """
import os
import afresh

file = os.open("received", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for change in afresh.changes(consumer="index", wait={wait}):
    os.write(file, f"{{change.cursor}} {{change.item}} {{change.version}}\\n".encode())
"""


def received(folder: Path) -> list[str]:
    path = folder / "received"
    return path.read_text().splitlines() if path.exists() else []


def kill_both(quick: QuickAfresh, folder: Path, kills: int, pages: int) -> None:
    (folder / "afresh.toml").write_text(SETTINGS)
    for name, wait in (("follow", True), ("finish", False)):
        (folder / f"{name}.py").write_text(CONSUMER.format(wait=wait))
    rng = np.random.default_rng(11)
    with LivingSite([2.0] * pages, lasts_s=60.0 + 30.0 * kills) as site:
        with engine_for(folder) as engine:
            engine.add(site.urls())
        for _ in range(kills):
            kill_in_turn(quick, folder, site, rng)
        assert quick_finish(quick, folder) == 0
    check(folder)


def kill_in_turn(quick: QuickAfresh, folder: Path, site: LivingSite, rng: np.random.Generator) -> None:
    """Start an engine and a consumer, and kill first one of them and then the other, at random moments."""
    engine = quick.start("run", folder=folder)
    consumer = quick.start(file=str(folder / "follow.py"), folder=folder)
    lines = len(received(folder)) + int(rng.integers(0, 2 * site.rates.size))
    until(lambda: len(received(folder)) >= lines, "changes that the consumer saw")
    asked = len(site.requests) + int(rng.integers(1, site.rates.size))
    first, second = (engine, consumer) if rng.random() < 0.5 else (consumer, engine)
    if first is consumer:
        _kill(consumer)
    until(lambda: len(site.requests) >= asked, "requests of the engine")
    _kill(engine)
    if second is consumer:
        _kill(consumer)


def _kill(process: QuickProcess) -> None:
    assert process.poll() is None, "it ended by itself"
    process.close()


def quick_finish(quick: QuickAfresh, folder: Path) -> int:
    """Run the consumer until it is at the end; return its exit code."""
    process = quick.start(file=str(folder / "finish.py"), folder=folder)
    try:
        return process.wait(120)
    finally:
        process.close()


def check(folder: Path) -> None:
    """The feed has each version of each item once, and the consumer saw each change, in order."""
    got = [line.split() for line in received(folder)]
    with engine_for(folder) as engine:
        entries = list(engine.store.feed.read(limit=10**6).entries)
        versions = {item.key: item.version for item in engine.store.items.by_id(range(1, 1000))}
        assert engine.store.upkeep.check() == []
        assert engine.feed.find_consumer("index").behind == 0
    assert [read_feed_cursor(entry.cursor).number for entry in entries] == list(range(1, len(entries) + 1))
    told = Counter((entry.key, entry.version) for entry in entries)
    assert told == Counter((key, each) for key, last in versions.items() for each in range(1, last + 1))
    first_seen = list(dict.fromkeys(cursor for cursor, _, _ in got))
    assert first_seen == [entry.cursor for entry in entries]
    assert {(item, int(version)) for _, item, version in got} == set(told)


def test_three_kills_of_both_skip_no_change(quick_afresh: QuickAfresh, tmp_path: Path) -> None:
    kill_both(quick_afresh, tmp_path, 3, 20)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_fifty_kills_of_both_skip_no_change(quick_afresh: QuickAfresh, tmp_path: Path) -> None:
    kill_both(quick_afresh, tmp_path, 50, 40)

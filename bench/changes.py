"""The change feed: how fast it is listed, and how soon a listener hears of a change.

A million changes (20,000 with ``--quick``) are listed without content by ``afresh changes --json``, in a
process of its own, whose start counts too. Then ``afresh changes --follow`` and a client of the API that
waits listen while single changes are committed at random moments; the delay is from the end of the commit to
the arrival.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import numpy as np

from afresh.engine.app import init_folder, open_engine
from afresh.engine.engine import Engine
from afresh.stores.sqlite.store import SqliteStore
from afresh.values.reported import Reported
from bench.process import run
from bench.rows import Row

_AT_ONCE = 20_000
_PAGE = "https://example.org/page"


def rows(*, quick: bool) -> list[Row]:
    size, commits = (20_000, 5) if quick else (1_000_000, 100)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        init_folder(folder)
        with open_engine(folder) as engine:
            engine.add([_PAGE])
            _fill(engine, size)
            listed = _list(folder, size)
            heard = _delays(engine, _follow(folder), commits)
            answered = _delays(engine, _poll_api(folder), commits)
    wanted = None if quick else 1.0
    return [
        Row(f"changes --json, {size:.0e} changes", size / listed, "/s", at_least=None if quick else 20e3),
        Row("changes --follow, median delay", float(np.median(heard)), "s"),
        Row("changes --follow, 99th percentile", float(np.quantile(heard, 0.99)), "s", at_most=wanted),
        Row("API with wait, median delay", float(np.median(answered)), "s"),
        Row("API with wait, 99th percentile", float(np.quantile(answered, 0.99)), "s", at_most=wanted),
    ]


def _fill(engine: Engine, size: int) -> None:
    """Write changes to the feed as commits do, many in each transaction."""
    store = engine.store
    assert isinstance(store, SqliteStore)
    database, feed = store.database, store.feed
    source = database.write(lambda connection: database.name_ids(connection, {"web"})["web"])
    for first in range(0, size, _AT_ONCE):
        table = [
            (
                number,
                f"{_PAGE}-{number}.html",
                source,
                "changed",
                2,
                1e9 + number,
                None,
                20_000,
                19_000,
                0.1,
                0,
            )
            for number in range(first, min(first + _AT_ONCE, size))
        ]
        database.write(lambda connection, table=table: feed.append(connection, table))  # type: ignore[misc]


def _list(folder: Path, size: int) -> float:
    """Return the seconds that the command takes."""
    command = f"{sys.executable} -m afresh -C {folder} changes --json | wc -l"
    found = run(["sh", "-c", command])
    assert int(found.output) == size
    return found.seconds


Listener = Callable[[], object]
"""A function that waits until the listener has heard of the next change."""


@contextmanager
def _follow(folder: Path) -> Iterator[Listener]:
    words = [
        sys.executable,
        "-m",
        "afresh",
        "-C",
        str(folder),
        "changes",
        "--since",
        "now",
        "--follow",
        "--json",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None

        lines = process.stdout

        def hear() -> None:
            if not lines.readline():
                raise EOFError

        try:
            yield hear
        finally:
            process.kill()
            process.wait()


@contextmanager
def _poll_api(folder: Path) -> Iterator[Listener]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "afresh", "-C", str(folder), "serve", "--port", str(port)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
        address, cursor = f"http://127.0.0.1:{port}/api/v1/changes", "now"

        def hear() -> None:
            nonlocal cursor
            while process.poll() is None:
                try:
                    with urllib.request.urlopen(f"{address}?since={cursor}&wait=60s") as answer:
                        found = json.load(answer)
                except OSError:  # the server is starting
                    threading.Event().wait(0.1)
                    continue
                cursor = found["cursor"]
                if found["changes"]:
                    return
            raise EOFError

        try:
            yield hear
        finally:
            process.kill()
            process.wait()


def _delays(engine: Engine, listening: AbstractContextManager[Listener], commits: int) -> list[float]:
    """Return the seconds from the end of each commit until the listener has heard of it."""
    chance, delays = np.random.default_rng(3), []
    with listening as hear:
        heard_s: list[float] = []

        def listen() -> None:
            with suppress(EOFError, ValueError):
                while True:
                    hear()
                    heard_s.append(time.perf_counter())

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        while not heard_s:  # until the listener has started, it misses changes
            _commit(engine)
            threading.Event().wait(0.2)
        threading.Event().wait(2.0)
        for _ in range(commits):
            before = len(heard_s)
            _commit(engine)
            committed_s = time.perf_counter()
            while len(heard_s) == before:
                threading.Event().wait(0.001)
            delays.append(max(0.0, heard_s[before] - committed_s))
            threading.Event().wait(float(chance.uniform(0.0, 0.5)))
    thread.join()
    return delays


def _commit(engine: Engine) -> None:
    now_s = engine.clock.now_s()
    engine.observe([Reported(_PAGE, now_s, content=repr(now_s).encode())])

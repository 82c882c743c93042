"""The head of a cluster is lost, or the command is killed: the run ends, and the next one goes on."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from subprocess import DEVNULL, Popen

import numpy as np
import pytest
from tests.cluster.ray_cluster import ray_cluster, ray_folder
from tests.engine.living import LivingSite
from tests.waiting import until

from afresh.cluster.ray_session import HeadLostError, check_head, head_watch
from afresh.engine.app import open_engine
from afresh.values.clock import SystemClock

pytestmark = [
    pytest.mark.waits,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray leaves its pipes to the end of the process
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
PAGES, LIMIT_S = 24, 240.0
RUN = ["cluster", "run", "--shards", "2"]
CLOCK = SystemClock()
SETTINGS = """
[store]
url = "sqlite:project.db"
[budget]
requests = "24/s"
[cluster]
store = "sqlite:shards/{shard}.db"
share = "8s"
report = "1s"
[[source]]
name = "web"
delay = 0
concurrency = 4
min_interval = 0
respect_robots = false
allow_private = true
"""


class Command:
    """``afresh cluster run`` in a process of its own."""

    def __init__(self, folder: Path, own: dict[str, str], number: int, *options: str) -> None:
        words = [
            sys.executable,
            "-m",
            "afresh",
            "-C",
            str(folder),
            "cluster",
            "run",
            "--shards",
            "2",
            *options,
        ]
        self._log = folder / f"run-{number}.log"
        self.began_s = CLOCK.now_s()
        with self._log.open("w") as log:
            self.process = Popen(words, stdout=DEVNULL, stderr=log, env={**os.environ, **own})

    def wait_until_all_are_polled(self, site: LivingSite) -> None:
        def are_polled() -> bool:
            assert self.process.poll() is None, self.log
            return len({path for time_s, path in list(site.requests) if time_s >= self.began_s}) == PAGES

        until(are_polled, "every page is polled", LIMIT_S)

    @property
    def log(self) -> str:
        return self._log.read_text()


@pytest.fixture
def site() -> Iterator[LivingSite]:
    with LivingSite(np.geomspace(0.01, 1.0, PAGES).tolist(), hosts=4, lasts_s=1200.0) as started:
        yield started


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_next_run_goes_on(site: LivingSite, tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text(SETTINGS)
    with open_engine(tmp_path) as engine:
        engine.add(site.urls())
    commands: list[Command] = []

    with ray_folder() as own:

        def start(*options: str) -> Command:
            commands.append(Command(tmp_path, own, len(commands), *options))
            commands[-1].wait_until_all_are_polled(site)
            return commands[-1]

        try:
            with ray_cluster() as nodes:
                first = start("--address", nodes.address)
                nodes.kill_head()
                assert first.process.wait(LIMIT_S) == 1
                assert f"the head of the Ray cluster at {nodes.address} is lost: this run ends" in first.log
            killed = start()  # on a Ray of its own, after the machine of the first one
            killed.process.kill()
            killed.process.wait()
            last = start()
            last.process.send_signal(signal.SIGTERM)
            assert last.process.wait(LIMIT_S) == 143
            assert "SIGTERM received" not in last.log  # Ray's handler, which may end the process at once
        finally:
            for command in commands:
                command.process.kill()
                command.process.wait()
    times = np.sort([time_s for time_s, _ in site.requests])
    level = np.arange(times.size) - 24.0 * times
    worst = float(np.max(level - np.minimum.accumulate(level))) + 1.0
    assert worst <= 24.0 * 1.5  # the burst of a second, and half a second until the site counts


def test_a_head_that_does_not_answer_is_named() -> None:
    words = (
        r"the head of the Ray cluster at 127\.0\.0\.1:9 is lost: this run ends, and nothing is lost that was"
    )
    with pytest.raises(HeadLostError, match=words):
        check_head("127.0.0.1:9")


def test_a_head_that_is_lost_is_told_while_a_call_waits_for_it() -> None:
    told: Queue[HeadLostError] = Queue()
    with socket.create_server(("127.0.0.1", 0)) as head:
        address = f"127.0.0.1:{head.getsockname()[1]}"
        with head_watch(address, told.put):
            head.accept()[0].close()  # it looks
            assert told.empty()
            head.close()
            assert f"head of the Ray cluster at {address} is lost" in str(told.get(timeout=LIMIT_S))

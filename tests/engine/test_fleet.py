"""Several engines on one store are a fleet: what they promise together, as the site itself counts it.

These are real processes, killed at random; how they keep the budget and the hosts' delays together is tested
to the millisecond in virtual time, in ``test_troubles.py``.
"""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tests.engine.living import CLOCK, LivingSite
from tests.servers.postgres import PostgresServer
from tests.servers.quick_afresh import QuickAfresh, QuickProcess
from tests.stores.backends import schema_url
from tests.waiting import LIMIT_S, until

from afresh.engine.app import open_engine
from afresh.engine.engine import Engine
from afresh.stores.store import PLANNER

pytestmark = pytest.mark.waits

HOSTS, PAGES = 4, 40
BUDGET, DELAY_S, CLAIM_S = 60.0, 0.05, 1.5
SETTINGS = f"""
[store]
url = "{{url}}"
[budget]
requests = "{BUDGET}/s"
[run]
claim = "{CLAIM_S}s"
[[source]]
name = "web"
delay = "{DELAY_S}s"
concurrency = 1
first_rest = "0.2s"
respect_robots = false
allow_private = true
min_interval = 0
"""


class Fleet:
    """Engines in processes of their own, each with a folder of its own, on one store and one site."""

    def __init__(self, quick: QuickAfresh, folder: Path, url: str, site: LivingSite) -> None:
        self.site, self._quick, self._folder = site, quick, folder
        folder.mkdir(exist_ok=True)
        (folder / "afresh.toml").write_text(SETTINGS.format(url=url))
        self.processes: list[QuickProcess] = []
        self.cut_off: Counter[int] = Counter()  # items that were leased when an engine was killed
        self._log = folder / "log"
        with self.engine() as engine:
            engine.add(site.urls())

    def engine(self) -> Engine:
        """An engine of ours on the same store, to look and ask with."""
        return open_engine(self._folder)

    def start(self) -> None:
        """One more ``afresh run``."""
        with self._log.open("ab") as log:
            self.processes.append(self._quick.start("run", folder=self._folder, err=log))

    def refused(self) -> Counter[int]:
        """The items whose outcomes came after another engine had polled them, as the engines say."""
        text = self._log.read_text()
        return Counter(map(int, re.findall(r"outcome was not committed .*?item (\d+):", text)))

    def waits(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition while the engines run."""
        until(condition, "the engines do it")

    def said(self, words: str) -> int:
        """How often the engines have said these words."""
        return self._log.read_text().count(words)

    def served(self, more: int) -> None:
        """Wait until the site has served so many pages more."""
        before = len(self.site.requests)
        self.waits(lambda: len(self.site.requests) >= before + more)

    def working(self) -> set[str]:
        """The workers that hold hosts now."""
        with self.engine() as engine:
            claims = engine.store.fleet.claims(CLOCK.now_s())
        return {claim.worker for claim in claims if claim.name != PLANNER}

    def stop(self) -> None:
        """Ask all to end in order, and see that they do."""
        running = [process for process in self.processes if process.poll() is None]
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            assert process.wait(LIMIT_S) == 0

    def close(self) -> None:
        """Whatever happened, nothing stays."""
        for process in self.processes:
            process.close()


@contextmanager
def fleet_on(quick: QuickAfresh, folder: Path, url: str, pages: int = PAGES) -> Iterator[Fleet]:
    rates = np.random.default_rng(5).gamma(0.5, 1.0, pages)
    with LivingSite(rates.tolist(), hosts=HOSTS) as site:
        fleet = Fleet(quick, folder, url, site)
        try:
            yield fleet
        finally:
            fleet.close()


def check(fleet: Fleet) -> None:
    """Everything that is promised, from the site's own log and from the store."""
    site = fleet.site
    assert site.twice == []
    with fleet.engine() as engine:
        assert engine.store.upkeep.check() == []
        for page in range(site.rates.size):
            copy = engine.get(site.url(page))
            assert copy is not None
            assert copy.content in {site.content(page, version) for version in range(2000)}
        assert engine.store.fleet.claims(CLOCK.now_s()) == []
        assert engine.store.leases.open(CLOCK.now_s() + CLAIM_S) == []


def kill_one(fleet: Fleet, rng: np.random.Generator, polls: int) -> None:
    """One of two is killed at a random moment; the other takes over all hosts within a claim's time."""
    fleet.served(int(rng.integers(polls)))
    victim = fleet.processes[int(rng.integers(2))]
    with fleet.engine() as engine:  # open already: the other one soon finds it dead, and frees its leases
        victim.stop()
        fleet.cut_off.update(item_id for item_id, _ in engine.store.leases.open(CLOCK.now_s() - 60.0))
    victim.close()
    killed_s = CLOCK.now_s()
    fleet.waits(lambda: asked_since(fleet.site, killed_s) == set(range(HOSTS)))


def asked_since(site: LivingSite, since_s: float) -> set[int]:
    """The hosts that were asked since."""
    return {site.host_of(path) for time_s, path in site.requests[-400:] if time_s > since_s}


def kept_everything(fleet: Fleet) -> None:
    """No outcome is lost: the site served each page as often as the store counts polls of it.

    Only what was under way when an engine was killed may be missing; its lease tells. What came when another
    had polled the page since counts for nothing, and is said.
    """
    served, refused = Counter(path for _, path in fleet.site.requests), fleet.refused()
    with fleet.engine() as engine:
        ids = engine.store.items.ids(fleet.site.urls())
        for item in engine.store.items.by_id(list(ids.values())):
            missing = served[f"/p/{item.key.rsplit('/', 1)[1]}"] - refused[item.id] - item.polls
            assert 0 <= missing <= fleet.cut_off[item.id], item.key


def test_a_killed_engine_and_a_stopped_database(
    quick_afresh: QuickAfresh, own_postgres: PostgresServer, tmp_path: Path
) -> None:
    rng, url = np.random.default_rng(), schema_url(own_postgres.url(), tmp_path)
    with fleet_on(quick_afresh, tmp_path / "mirror", url) as fleet:
        disturbed(fleet, own_postgres, rng, 1, 40)


@pytest.mark.slow
def test_engines_killed_and_a_database_stopped_again_and_again(
    quick_afresh: QuickAfresh, own_postgres: PostgresServer, tmp_path: Path
) -> None:
    rng, url = np.random.default_rng(), schema_url(own_postgres.url(), tmp_path)
    with fleet_on(quick_afresh, tmp_path / "mirror", url, 400) as fleet:
        disturbed(fleet, own_postgres, rng, 8, 300)


def disturbed(fleet: Fleet, server: PostgresServer, rng: np.random.Generator, times: int, polls: int) -> None:
    """Kill and restart engines and the database, then look at what came of it."""
    fleet.start()
    fleet.start()
    fleet.waits(lambda: len(fleet.working()) == 2)
    for time in range(times):
        kill_one(fleet, rng, polls)
        fleet.processes = [each for each in fleet.processes if each.poll() is None]
        said = fleet.said("does not answer")
        server.stop("immediate" if time % 2 else "fast")
        fleet.waits(lambda: fleet.said("does not answer") > said)  # noqa: B023
        server.start()
        fleet.served(30)
        fleet.start()
        fleet.waits(lambda: len(fleet.working()) == 2)
    fleet.stop()
    check(fleet)
    kept_everything(fleet)


def test_two_engines_on_one_file(quick_afresh: QuickAfresh, tmp_path: Path) -> None:
    rng = np.random.default_rng()
    with fleet_on(quick_afresh, tmp_path / "mirror", "sqlite:afresh.db") as fleet:
        fleet.start()
        fleet.start()
        fleet.waits(lambda: len(fleet.working()) == 2)
        with fleet.engine() as engine:
            planners = [claim for claim in engine.store.fleet.claims(CLOCK.now_s()) if claim.name == PLANNER]
            assert len(planners) == 1
            # The budget and the hosts are shared with whoever asks beside them.
            assert engine.get(fleet.site.url(0), max_age_s=0.0) is not None
        kill_one(fleet, rng, 40)
        fleet.stop()
        check(fleet)
        kept_everything(fleet)


def test_status_names_the_workers(quick_afresh: QuickAfresh, tmp_path: Path) -> None:
    with fleet_on(quick_afresh, tmp_path / "mirror", "sqlite:afresh.db") as fleet:
        fleet.start()
        fleet.waits(lambda: len(fleet.working()) == 1)
        status = quick_afresh.run("status", "--json", folder=tmp_path / "mirror")
        (worker,) = json.loads(status.stdout)["workers"]
        assert worker["plans"]
        assert 1 <= worker["groups"] <= HOSTS
        fleet.stop()
        with fleet.engine() as engine:
            assert engine.status().workers == ()

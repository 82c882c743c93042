"""Every statement that a run gives to SQLite fails once: the run says so, goes on, and keeps its outcomes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.history import Told, judge_order
from tests.engine.virtual_site import VirtualSite
from tests.stores.sqlite.faults import KINDS, Faults, Kind, failing_calls

from afresh.engine.engine import Engine
from afresh.engine.logs import LOGGER
from afresh.values.changes import Change
from afresh.values.errors import StoreError
from afresh.values.items import ItemQuery

PAGES, LASTS_S = 3, 3.0
SOURCE = 'respect_robots = false\non_change = "tests.engine.test_store_faults:write_down"'
TOLD: list[Told] = []


def write_down(change: Change) -> None:
    """The hook of the source."""
    TOLD.append(Told(change.item, change.version, int(change.content.split()[3])))


class Heard(logging.Handler):
    """Collects what the engine says."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(f"{record.getMessage()} {getattr(record, 'fields', {})}")


@pytest.fixture
def heard() -> Iterator[Heard]:
    ear, before = Heard(), LOGGER.level
    LOGGER.addHandler(ear)
    LOGGER.setLevel(logging.DEBUG)  # a pulse that fails is not worth a warning: it is written every second
    yield ear
    LOGGER.removeHandler(ear)
    LOGGER.setLevel(before)


def run_engine(folder: Path, faults: Faults) -> str:
    """Let an engine run for some seconds of virtual time, and judge what it stored by what the site served.
    Return why the run did not begin, or an empty string."""
    folder.mkdir()
    TOLD.clear()
    site, faults.is_counting, problem = VirtualSite([0.5] * PAGES, hosts=2), False, ""
    with failing_calls(faults), site.engine(folder, source=SOURCE, budget="4/s") as engine:
        engine.add(site.urls())
        faults.is_counting = True
        try:
            engine.run(for_s=LASTS_S)
        except StoreError as error:
            # A store that cannot be read at the very beginning ends the command, as a missing one does.
            assert site.requests == []
            problem = str(error)
            engine.run(for_s=LASTS_S)
        faults.is_counting = False
        assert len(site.requests) > PAGES
        judge(site, engine)
    return problem


def judge(site: VirtualSite, engine: Engine) -> None:
    served, items = Counter(path for _, path in site.requests), engine.store.items.page(ItemQuery(), 99).items
    for item in items:
        page = item.key.rsplit("/", 1)[1]
        assert item.polls == served[f"/p/{page}"], f"{item.key} lost or doubled an outcome"
    assert judge_order(TOLD, {item.key: item.version for item in items}) == []
    assert engine.store.ledger.total(0.0, 1e12).requests == len(site.requests)
    assert engine.store.upkeep.check() == []


def walk(folder: Path, heard: Heard, places: list[int], kinds: tuple[Kind, ...]) -> None:
    for turn, place in enumerate(places):
        heard.said.clear()
        faults = Faults(place, kinds[turn % len(kinds)])
        problem = run_engine(folder / f"{turn} {faults.kind}", faults)
        assert faults.has_failed
        assert problem or any("afresh.db" in said for said in heard.said), faults.names[place]


def first_places(folder: Path) -> list[int]:
    """Return where each statement of a run without faults is first made."""
    clean = Faults()
    assert run_engine(folder, clean) == ""
    places = {name: place for place, name in reversed([*enumerate(clean.names)])}
    assert len(places) > 40
    return sorted(places.values())


def test_a_statement_that_fails_once_does_not_end_a_run(tmp_path: Path, heard: Heard) -> None:
    walk(tmp_path, heard, first_places(tmp_path / "clean")[::5], KINDS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_statement_that_fails_once_ends_a_run(tmp_path: Path, heard: Heard, kind: Kind) -> None:
    walk(tmp_path, heard, first_places(tmp_path / "clean"), (kind,))

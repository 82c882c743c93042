"""What the watcher does to the store besides following it: old costs do not add up for ever."""

from __future__ import annotations

from pathlib import Path

from tests.engine.virtual_site import VirtualSite

from afresh.engine.runner.store_watcher import LEDGER_KEPT_S
from afresh.values.outcome import Spent


def test_costs_of_more_than_a_month_ago_are_removed(tmp_path: Path) -> None:
    with VirtualSite([0.0] * 2) as site, site.engine(tmp_path) as engine:
        engine.add(site.urls())
        now_s, ledger = site.time.now_s(), engine.store.ledger
        ledger.add("hosts", now_s - LEDGER_KEPT_S - 120.0, Spent(7))
        ledger.add("hosts", now_s - LEDGER_KEPT_S + 3600.0, Spent(5))
        engine.run(for_s=2.0)
        assert ledger.total(0.0, now_s - 60.0).requests == 5

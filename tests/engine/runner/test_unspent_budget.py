"""The engine says why it did not spend its budget: one reason for each of these worlds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engine.virtual_site import VirtualSite

LASTS_S = 20.0


def unspent(
    site: VirtualSite,
    folder: Path,
    *,
    budget: int = 5,
    for_s: float = LASTS_S,
    min_interval_s: float = 0.0,
    more: str = "",
    source: str = "",
) -> dict[str, float]:
    """The requests that a run did not spend, by reason, as shares of its budget in requests a second."""
    with site.engine(folder, budget=f"{budget}/s", more=more, source=source) as engine:
        engine.add(site.urls(), min_interval_s=min_interval_s)
        engine.run(for_s=for_s)
        run = engine.status().run
    assert run is not None
    allowed = budget * (run.time_s - run.started_s)
    assert sum(run.unspent.values()) == pytest.approx(max(allowed - run.requests, 0.0), abs=1.5)
    return {reason: requests / allowed for reason, requests in run.unspent.items()}


def test_a_budget_that_is_spent_has_no_reason(tmp_path: Path) -> None:
    found = unspent(VirtualSite([0.5] * 10), tmp_path)
    assert sum(found.values()) < 0.05


def test_hosts_at_their_limit(tmp_path: Path) -> None:
    """One host may be asked once a second: four of five requests are left."""
    found = unspent(VirtualSite([0.5] * 10), tmp_path, source="delay = '1s'")
    assert found["hosts"] == pytest.approx(0.8, abs=0.06)
    assert sum(found.values()) - found["hosts"] < 0.05


def test_windows_that_are_closed(tmp_path: Path) -> None:
    site = VirtualSite([0.5] * 10)
    found = unspent(site, tmp_path, source=f"windows = ['{site.closed_now()}']")
    assert found["windows"] == pytest.approx(1.0, abs=0.03)
    assert found.keys() == {"windows"}


def test_no_item_may_be_polled_again_yet(tmp_path: Path) -> None:
    """After the first copies, no item may be polled for an hour."""
    found = unspent(VirtualSite([0.5] * 10), tmp_path, min_interval_s=3600.0)
    assert found["intervals"] == pytest.approx(1 - 11 / (5 * LASTS_S), abs=0.06)
    assert sum(found.values()) - found["intervals"] < 0.05


def test_nothing_at_all_to_poll(tmp_path: Path) -> None:
    assert unspent(VirtualSite(), tmp_path).keys() == {"nothing"}


def test_a_machine_that_is_too_slow(tmp_path: Path) -> None:
    """Every round of the event loop takes 30 ms, for 200 requests a second to 150 hosts."""
    site = VirtualSite([0.5] * 600, hosts=150)
    site.time.round_s = 0.03
    found = unspent(site, tmp_path, budget=200, for_s=3.0)
    assert found["machine"] > 0.5
    assert sum(found.values()) - found["machine"] < 0.1


def test_every_item_is_under_way_on_a_slow_machine(tmp_path: Path) -> None:
    """Three items on three hosts are always under way, but their polls end too slowly for the budget."""
    site = VirtualSite([0.5] * 3, hosts=3)
    site.time.round_s = 0.03
    found = unspent(site, tmp_path, budget=200, for_s=3.0)
    assert found["machine"] > 0.5
    assert found.get("nothing", 0.0) < 0.05


def test_other_limits_of_the_budget(tmp_path: Path) -> None:
    """Ten bytes a second are far less than five pages a second."""
    found = unspent(VirtualSite([0.5] * 10), tmp_path, more="bytes = '10B/s'")
    assert found["limits"] > 0.5
    assert sum(found.values()) - found["limits"] < 0.1

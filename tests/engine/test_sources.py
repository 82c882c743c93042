"""The engine with other sources than HTTP, with windows, and with budgets that are known only afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engine.virtual_site import VirtualSite
from tests.servers.site import page
from tests.servers.threaded import sitemap

from afresh.engine.settings.parsing import parse_settings

CALLS: list[str] = []


def record(key: str) -> str | None:
    """A source: whatever is called ``missing`` is not there."""
    CALLS.append(key)
    return None if key == "missing" else f"record {key}"


def test_a_function_can_be_a_source(tmp_path: Path) -> None:
    source = f"[[source]]\nname = 'records'\nkind = 'python'\ncall = '{__name__}:record'"
    CALLS.clear()
    settings = parse_settings("[budget]\nrequests = '50/s'\n" + source)
    with VirtualSite() as site, site.engine(tmp_path, settings=settings) as engine:
        engine.add(["1", "2", "missing"])
        assert engine.run(once=True).polls == 3
        assert sorted(CALLS) == ["1", "2", "missing"]
        copy = engine.get("2")
        assert copy is not None
        assert copy.content == b"record 2"
        assert engine.get("missing") is None
        assert engine.store.items.by_id([3])[0].problem


def test_nothing_is_polled_outside_the_windows(tmp_path: Path) -> None:
    with (
        VirtualSite([0.0] * 2) as site,
        site.engine(tmp_path, source=f"windows = ['{site.closed_now()}']") as engine,
    ):
        engine.add(site.urls())
        assert engine.run(for_s=5.0).polls == 0
        assert site.requests == []
        site.time.passed_s += 3 * 3600.0
        assert engine.run(for_s=1.0).polls > 0


def test_a_copy_that_is_asked_for_is_not_polled_outside_the_windows_either(tmp_path: Path) -> None:
    source = f"[[source]]\nname = 'records'\nkind = 'python'\ncall = '{__name__}:record'\n"
    site = VirtualSite()
    with site.engine(tmp_path, settings=parse_settings(source)) as engine:
        engine.add(["1"])
        engine.get("1", max_age_s=0.0)
    CALLS.clear()
    closed = parse_settings(source + f"windows = ['{site.closed_now()}']")
    with site.engine(tmp_path, settings=closed) as engine:
        copy = engine.get("1", max_age_s=0.0)
        assert copy is not None
        assert (copy.content, CALLS) == (b"record 1", [])


def test_listings_wait_for_the_windows_too(tmp_path: Path) -> None:
    site = VirtualSite(routes={"/a": page(b"a")})
    site.routes["/map.xml"] = page(sitemap(site.root, "a"), Content_Type="application/xml")
    with site.engine(tmp_path, source=f"windows = ['{site.closed_now()}']") as engine:
        assert engine.add_listings(sitemaps=[f"{site.root}/map.xml"]) == 0
        engine.run(for_s=5.0)
        assert site.paths == []
    with site.engine(tmp_path) as engine:
        assert engine.run(once=True).polls == 1


@pytest.mark.parametrize("limit", ["bytes = '500B/s'", "money = '10/s'\nprice_per_request = 1.0"])
def test_debts_are_paid_before_the_next_request(tmp_path: Path, limit: str) -> None:
    """Ten requests a second at most, for each answer costs some hundred bytes, or a tenth of the money."""
    with VirtualSite([0.0] * 5) as site:
        with site.engine(tmp_path, budget=f'100/s"\n{limit}\n#') as engine:
            engine.add(site.urls())
            engine.run(for_s=2.0)
            spent = engine.store.ledger.total(0.0, 1e12)
        assert 5 <= len(site.requests) <= 30
        if limit.startswith("bytes"):
            assert spent.bytes <= 500 * 2.2 + 500  # the last answer is paid for later
        else:
            assert spent.money == pytest.approx(spent.requests)


def test_items_with_bounds_are_polled_within_them(tmp_path: Path) -> None:
    with VirtualSite([0.0] * 3) as site, site.engine(tmp_path, budget="20/s") as engine:
        engine.add([site.url(0)], min_interval_s=60.0)
        engine.add([site.url(1)], max_interval_s=0.3, weight=1e-9)
        engine.add([site.url(2)])
        engine.run(for_s=2.5)
        polls = [sum(path == f"/p/{page}" for _, path in site.requests) for page in range(3)]
        assert polls[0] == 1
        assert polls[1] >= 4

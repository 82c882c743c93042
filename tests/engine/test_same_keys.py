"""Two sources with the same keys: each item has a life of its own in runs, hooks, views, leases, notices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.test_external_polls import FixedClock

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.lending import LeaseKey
from afresh.engine.reporting.export import write_folder, write_polls
from afresh.engine.settings.parsing import parse_settings
from afresh.values.errors import AmbiguousKeyError, InputError, UsageError
from afresh.values.items import Item, ItemChange
from afresh.values.lease import Lease
from afresh.values.reported import Reported

PRICES = {"shop-a": {"17": b"9.90", "18": b"4.50"}, "shop-b": {"17": b"8.90", "18": b"5.50"}}
SETTINGS = """
[budget]
requests = "50/s"
burst = 50
[plan]
audit_share = 0.0
[[source]]
name = "shop-a"
kind = "python"
call = "tests.engine.test_same_keys:price_of_a"
on_change = ["sh", "-c", 'echo "$AFRESH_SOURCE $1 $2 $(cat)" >> "$0"', "FILE"]
[[source]]
name = "shop-b"
kind = "python"
call = "tests.engine.test_same_keys:price_of_b"
on_change = ["sh", "-c", 'echo "$AFRESH_SOURCE $1 $2 $(cat)" >> "$0"', "FILE"]
[[view]]
name = "cheapest"
items = ["17"]
weight = 3.0
"""

SHOP = """
[[source]]
name = "{shop}"
kind = "search"
relation = "{folder}/films.csv"
key = "sku"
keywords = ["director:;"]
fields = {{ price = "relative" }}
server = "{folder}/{shop}.csv"
"""


def price_of_a(key: str) -> bytes:
    return PRICES["shop-a"][key]


def price_of_b(key: str) -> bytes:
    return PRICES["shop-b"][key]


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """The file to which the hooks write."""
    return tmp_path / "told"


@pytest.fixture
def engine(tmp_path: Path, told: Path) -> Iterator[Engine]:
    """Two shops with the same two articles, which were never polled."""
    with make_engine(parse_settings(SETTINGS.replace("FILE", str(told))), tmp_path, seed=1) as made:
        assert made.add(["17", "18"], source="shop-a") == 2
        assert made.add(["17", "18"], source="shop-b") == 2
        yield made


def content(engine: Engine, key: str, source: str) -> bytes:
    copy = engine.get(key, source=source)
    assert copy is not None
    return copy.content


def item(engine: Engine, key: str, source: str) -> Item:
    found = engine.store.items.get(key, source)
    assert found is not None
    return found


def test_a_run_copies_both_and_hooks_learn_the_source(engine: Engine, told: Path) -> None:
    assert engine.run(once=True).polls == 4
    assert {(key, shop): content(engine, key, shop) for shop in PRICES for key in PRICES[shop]} == {
        (key, shop): price for shop, prices in PRICES.items() for key, price in prices.items()
    }
    assert sorted(told.read_text().split("\n")[:-1]) == [
        f"{shop} new {key} {price.decode()}"
        for shop, prices in PRICES.items()
        for key, price in prices.items()
    ]
    assert engine.store.upkeep.check() == []


def test_a_key_alone_is_refused_with_the_names_of_the_sources(engine: Engine) -> None:
    words = "item '17' is in several sources: shop-a, shop-b"
    change = ItemChange(weight=5.0)
    for use in (
        lambda: engine.get("17"),
        lambda: engine.versions("17"),
        lambda: engine.why("17"),
        lambda: engine.set(["18", "17"], change),
        lambda: engine.remove(["17"]),
        lambda: engine.poll_now(["17"]),
        lambda: engine.observe([Reported("17", 5.0, changed=True)]),
        lambda: engine.lending.release([LeaseKey("17", 1)]),
        lambda: engine.lending.extend([LeaseKey("17", 1)], 9.0),
    ):
        with pytest.raises(AmbiguousKeyError, match=words):
            use()
    assert [one.weight for one in engine.store.items.by_id([1, 2, 3, 4])] == [1.0] * 4
    with pytest.raises(UsageError, match="there is no item '17' of the source 'shop-c'"):
        engine.get("17", source="shop-c")
    with pytest.raises(InputError, match="there is no item '17' of the source 'shop-c'"):
        engine.observe([Reported("17", 5.0, changed=True, source="shop-c")])


def test_with_its_source_one_item_is_meant(engine: Engine) -> None:
    assert engine.set(["17", "19"], ItemChange(weight=5.0), source="shop-b") == ("19",)
    assert (item(engine, "17", "shop-a").weight, item(engine, "17", "shop-b").weight) == (1.0, 5.0)
    assert engine.why("17", source="shop-b").item.id == item(engine, "17", "shop-b").id
    assert engine.remove(["17"], source="shop-a") == ()
    assert engine.why("17").item.source == "shop-b"  # the only one that is left


def test_a_notice_without_a_source_reaches_all_items_of_its_key(engine: Engine) -> None:
    def noticed() -> list[int]:
        return [notice.item_id for notice in engine.store.notices.open()]

    assert engine.notice(["17", "nothing"]) == ("nothing",)
    assert noticed() == [item(engine, "17", shop).id for shop in PRICES]
    assert engine.notice(["18"], source="shop-b") == ()
    assert noticed()[2:] == [item(engine, "18", "shop-b").id]


def test_a_view_of_a_key_is_made_from_the_items_of_all_sources(engine: Engine) -> None:
    engine.run(once=True)
    why = engine.why_view("cheapest")
    assert (why.view.items, why.view.unknown) == (2, 0)
    assert {viewed.source for viewed in why.items} == set(PRICES)
    assert "its weight is 4, because views add theirs" in " ".join(engine.why("17", source="shop-a").reasons)


def test_leases_and_reports_name_the_source(tmp_path: Path) -> None:
    clock = FixedClock()
    text = SETTINGS.replace("on_change", "# on_change")
    with make_engine(parse_settings(text), tmp_path, clock=clock, seed=1) as engine:
        for shop in PRICES:
            engine.add(["17", "18"], source=shop)
        leases = [lease for lease in engine.due(9, lease_s=60.0) if isinstance(lease, Lease)]
        assert {(lease.source, lease.key) for lease in leases} == {
            (shop, key) for shop in PRICES for key in PRICES[shop]
        }
        own = {(lease.source, lease.key): lease for lease in leases}
        first, second = own["shop-a", "17"], own["shop-b", "17"]

        def report(lease: Lease, text: bytes) -> Reported:
            return Reported("17", clock.time_s, content=text, lease=lease.token, source=lease.source)

        clock.time_s += 1.0
        found = engine.observe([report(second, b"of b"), report(first, b"of a")])
        assert [answer.result for answer in found.answers] == ["recorded", "recorded"]
        assert (content(engine, "17", "shop-a"), content(engine, "17", "shop-b")) == (b"of a", b"of b")
        keys = [LeaseKey("18", own[shop, "18"].token, shop) for shop in PRICES]
        assert engine.lending.release([*keys[:1], keys[1]._replace(token=10**6)]) == ("18",)
        assert engine.lending.extend(keys, 600.0) == ("18",)
        assert engine.store.leases.until_s(own["shop-b", "18"].item_id, clock.time_s) == clock.time_s + 600.0
        # A log of the past, of both items with the key.
        log = [
            Reported("17", clock.time_s + at, changed=shop == "shop-b", source=shop)
            for shop in PRICES
            for at in (10.0, 20.0)
        ]
        clock.time_s += 30.0
        assert engine.observe(log).taken == 4
        assert [item(engine, "17", shop).changes for shop in PRICES] == [0, 2]
        mixed = engine.lending.record(
            [
                Reported("18", clock.time_s, changed=True),
                Reported("18", clock.time_s, changed=True, source="shop-a"),
            ],
            skip_invalid=True,
        )
        assert [answer.result for answer in mixed.answers] == ["invalid", "recorded"]
        assert "shop-a, shop-b" in mixed.answers[0].problem


def test_exports_name_the_source(engine: Engine, tmp_path: Path) -> None:
    engine.run(once=True)
    assert write_folder(engine.store, tmp_path / "out") == 4
    index: list[dict[str, Any]] = [
        json.loads(line) for line in (tmp_path / "out" / "index.jsonl").read_text().splitlines()
    ]
    files = {(row["source"], row["item"]): (tmp_path / "out" / row["file"]).read_bytes() for row in index}
    assert files == {(shop, key): price for shop, prices in PRICES.items() for key, price in prices.items()}
    assert write_polls(engine.store, str(tmp_path / "polls.csv")) == 4


def test_two_shops_over_one_relation_are_both_complete(tmp_path: Path) -> None:
    films = [f"{number},film {number},Director {number % 7}" for number in range(40)]
    (tmp_path / "films.csv").write_text("sku,title,director\n" + "\n".join(films) + "\n")
    text = '[budget]\nrequests = "1000/s"\nburst = 1000\n'
    for at, shop in enumerate(PRICES):
        rows = [f"{film},{number + at}" for number, film in enumerate(films)]
        (tmp_path / f"{shop}.csv").write_text("sku,title,director,price\n" + "\n".join(rows) + "\n")
        text += SHOP.format(shop=shop, folder=tmp_path)
    with make_engine(parse_settings(text), tmp_path, seed=1) as engine:
        engine.run(once=True)
        found = {
            shop: [json.loads(content(engine, str(number), shop))["price"] for number in range(40)]
            for shop in PRICES
        }
        counts = {count.source: count.items for count in engine.store.items.counts()}
        requests = engine.store.ledger.total(0.0, 1e12).requests
    assert counts == dict.fromkeys(PRICES, 40)
    assert found == {shop: [str(number + at) for number in range(40)] for at, shop in enumerate(PRICES)}
    assert requests < 40  # queries by director, not look-ups

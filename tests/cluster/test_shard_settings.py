"""A shard has the project's settings, but its own store, its part of the budget, and its hosts' listings."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from afresh.cluster.shard_settings import ShardSpec, check_settings, shard_of, shard_settings, with_budget
from afresh.engine.settings.overrides import SettingWithOrigin
from afresh.engine.settings.parsing import parse_settings
from afresh.sources.http.settings import HttpSettings
from afresh.values.errors import UsageError, WrongSettingsError

HOSTS = [f"site-{number}.example" for number in range(12)]
TEXT = """
[store]
copies = "file:copies/"
[budget]
requests = "40/s"
burst = 80
bytes = "4GB/h"
[[source]]
name = "web"
sitemaps = [SITEMAPS]
follow = {start = [STARTS]}
[[source]]
name = "books"
kind = "python"
call = "books:Source"
""".replace("SITEMAPS", ", ".join(f'"https://{host}/map.xml"' for host in HOSTS)).replace(
    "STARTS", ", ".join(f'"https://{host}/"' for host in HOSTS)
)
SHARDS = (0, 1, 2, 3)


def spec(shard: int, text: str = TEXT) -> ShardSpec:
    listings = {"web": {"feeds": [f"https://{host}/feed" for host in HOSTS]}}
    return ShardSpec(shard, SHARDS, text, {}, "/srv/mirror", "p", listings)


def test_each_listing_is_read_by_the_shard_of_its_host() -> None:
    owner, seen = shard_of(SHARDS), set[str]()
    for shard in SHARDS:
        own = shard_settings(spec(shard)).sources[0].settings
        assert isinstance(own, HttpSettings)
        hosts = {url.split("/")[2] for url in (*own.sitemaps, *own.feeds, *own.follow.start)}
        assert len(own.sitemaps) == len(own.feeds) == len(own.follow.start) == len(hosts)
        assert {owner(host) for host in hosts} <= {shard}
        seen |= hosts
    assert seen == set(HOSTS)


def test_a_source_of_another_kind_belongs_to_one_shard() -> None:
    holders = [shard for shard in SHARDS if shard_settings(spec(shard)).source("books")]
    assert holders == [shard_of(SHARDS)("books:Source")]


def test_a_shard_has_a_store_and_a_place_for_copies_of_its_own() -> None:
    store = shard_settings(spec(2)).store
    assert (store.url, store.copies) == ("sqlite:shards/2.db", "file:copies/shard-2")


def test_all_limits_of_the_budget_are_shared() -> None:
    budget = shard_settings(spec(0)).budget
    assert (budget.requests, budget.burst, budget.bytes) == pytest.approx((10.0, 20.0, 1e9 / 3600))
    less = with_budget(shard_settings(spec(0)), 2.0, 0.5).budget
    assert (less.requests, less.burst, less.bytes) == pytest.approx((2.0, 1.0, 0.2e9 / 3600))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[budget]\nrequests = '1/item/d'", "per item cannot be shared"),
        ("[cluster]\nstore = 'memory:{shard}'", "in memory is lost"),
        ("[cluster]\nstore = 'sqlite:{node}/{shard}.db'", "is unknown: only"),
    ],
)
def test_what_a_cluster_cannot_keep_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_settings(parse_settings(text))


def test_a_store_without_the_number_of_the_shard_is_refused() -> None:
    with pytest.raises(UsageError, match=r"must contain \{shard\}"):
        parse_settings("[cluster]\nstore = 'sqlite:one.db'")


def test_options_of_the_command_reach_the_processes_of_the_shards() -> None:
    given = {"budget.requests": SettingWithOrigin("8/s", "--budget 8/s")}
    sent = pickle.loads(pickle.dumps(replace(spec(0), overrides=given)))
    assert shard_settings(sent).budget.requests == 2.0
    wrong = pickle.loads(pickle.dumps(SettingWithOrigin("soon", "--budget soon")))
    with pytest.raises(WrongSettingsError, match="--budget soon: 'soon' is not a rate"):
        shard_settings(replace(spec(0), overrides={"budget.requests": wrong}))

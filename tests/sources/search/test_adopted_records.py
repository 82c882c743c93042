"""Records that queries bring, and that the relation lacks, become items if they fulfil a condition."""

from __future__ import annotations

import asyncio
import csv
from pathlib import Path
from typing import Any

import pytest
from tests.servers.api_site import ApiSite, served_api
from tests.servers.shaped_apis import Shelf, datasette
from tests.sources.polling import SetClock, lease_of
from tests.sources.searching import Desk

from afresh.sources.context import SourceContext
from afresh.sources.search.settings import SearchSettings
from afresh.sources.search.source import SearchSource
from afresh.sources.settings import read_settings
from afresh.values.errors import UsageError


def source_on(site: ApiSite, folder: Path, clock: SetClock, **changes: Any) -> SearchSource:
    table = {
        "name": "papers",
        "kind": "search",
        "relation": str(folder / "r.csv"),
        "key": "id",
        "keywords": ["author:;"],
        "scoped": True,
        "server": site.url + "/data/papers.json?author={author}&_size={size}&_next={next}",
        "next": "next",
        "look_up": site.url + "/data/papers/{key}.json",
        "total": "filtered_table_rows_count",
        "rows": "rows",
        "page_size": 50,
        "fields": {"cites": "absolute"},
        "delay": 0,
        "respect_robots": False,
        "allow_private": True,
        **changes,
    }
    return SearchSource(read_settings(SearchSettings, table), SourceContext(clock=clock, sleep=clock.sleep))


async def listed(source: SearchSource) -> set[str]:
    (listing,) = [one async for one in source.listings()]
    assert not listing.problem
    return {entry.key for entry in listing.entries}


def test_records_that_fulfil_the_condition_are_adopted_refreshed_and_kept(tmp_path: Path) -> None:
    shelf, clock = Shelf.of(60), SetClock(0.0)  # the first author has the papers 1 to 20
    with (tmp_path / "r.csv").open("w", newline="") as file:
        rows = [(number, shelf.rows[number]["author"]) for number in range(1, 6)]
        csv.writer(file).writerows([("id", "author"), *rows])
    own = {str(number) for number in range(1, 6)}
    fit = {str(number) for number in shelf.found("Ann Aue") if shelf.cites(number) > 12}

    async def run(site: ApiSite) -> None:
        source = source_on(site, tmp_path, clock, adopt="cites > `12`")
        assert await listed(source) == own
        desk = Desk(sorted(own), clock)
        await desk.ask(source)
        assert await listed(source) == own | fit
        desk.leases |= {key: lease_of(key, source="papers") for key in fit}
        for _ in range(8):
            clock.time_s += 1.0
            await desk.ask(source)
        assert fit <= set(desk.fetched)
        assert all(one.is_successful for one in desk.fetched.values())
        assert len([path for path in site.asked if "author=" in path]) == len(site.asked)  # by its keywords
        later = source_on(site, tmp_path, clock, adopt="cites > `12`")
        later.load_state(source.save_state())
        assert await listed(later) == own | fit
        without = source_on(site, tmp_path, clock)
        without.load_state(source.save_state())
        assert await listed(without) == own
        limited = source_on(site, tmp_path, clock, adopt="`true`", max_items=7)
        await Desk(sorted(own), clock).ask(limited)
        assert len(await listed(limited)) == 7
        for each in (source, later, without, limited):
            await each.close()

    with served_api(datasette(shelf)) as site:
        asyncio.run(run(site))


def test_only_records_of_web_servers_are_adopted(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="adopt: only records of a web server"):
        source_on(ApiSite(), tmp_path, SetClock(), server="records.csv", adopt="`true`")
    with pytest.raises(UsageError, match="adopt: 'a =' is not a JSON path"):
        source_on(ApiSite("https://a.test"), tmp_path, SetClock(), adopt="a =")

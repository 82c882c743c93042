"""The settings in docs/apis.md work against servers of the shapes that they are for."""

from __future__ import annotations

import asyncio
import csv
import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.servers.api_site import ApiSite, served_api
from tests.servers.shaped_apis import SHAPES, Shelf
from tests.sources.polling import SetClock, lease_of
from tests.sources.searching import Desk

from afresh.sources.api.settings import ApiSettings
from afresh.sources.api.source import ApiSource
from afresh.sources.context import SourceContext
from afresh.sources.search.settings import SearchSettings
from afresh.sources.search.source import SearchSource
from afresh.sources.settings import read_settings

PAGE = (Path(__file__).parents[3] / "docs" / "apis.md").read_text()
BLOCKS: dict[str, dict[str, Any]] = {
    name: tomllib.loads(text)["source"][0]
    for name, text in re.findall(r"^## (.*?)\n.*?^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
}
SECRETS = {"OPENALEX_KEY": "open sesame", "GITHUB_TOKEN": "gh-token"}
KEYS = {"Crossref": "10.5555/p{}", "OpenAlex": "W{}", "arXiv": "a.{}"}
OWN = range(1, 41)


def key_of(name: str, number: int) -> str:
    return KEYS.get(name, "{}").format(number)


@contextmanager
def served(name: str, shelf: Shelf) -> Iterator[ApiSite]:
    with served_api(SHAPES[name.partition(":")[0]](shelf)) as site:
        yield site


def on_site(value: Any, site: ApiSite) -> Any:
    """The settings with the address of the site instead of that of the API."""
    if isinstance(value, dict):
        return {key: on_site(each, site) for key, each in value.items()}
    if isinstance(value, str) and value.startswith("https://"):
        return value.replace(f"https://{urlsplit(value).netloc}", site.url)
    return value


def table_of(name: str, site: ApiSite, folder: Path, **changes: Any) -> dict[str, Any]:
    table = on_site(BLOCKS[name], site)
    quick = {"delay": 0, "allow_private": True, "respect_robots": False}
    return {**table, "relation": str(folder / "papers.csv"), **quick, **changes}


def write_relation(name: str, shelf: Shelf, folder: Path) -> None:
    with (folder / "papers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow((BLOCKS[name]["key"], "authors", "title"))
        for number in OWN:
            row = shelf.rows[number]
            writer.writerow((key_of(name, number), row["author"], row["title"]))


def check_content(name: str, shelf: Shelf, desk: Desk) -> None:
    for number in OWN:
        found = desk.fetched[key_of(name, number)]
        assert found.is_successful, found
        if found.content is not None:
            cites = shelf.cites(number)
            wanted = {"price": f"{cites}.50"} if name == "A shop in HTML" else {"cites": cites}
            if name == "arXiv":
                wanted = {"cites": str(cites)}
            assert json.loads(found.content) == wanted


SEARCHES = [name for name, table in BLOCKS.items() if table["kind"] == "search"]
# (API, whether its bulk look-up is used, most requests that refresh all 40 records)
CASES = [
    (name, bulk, 2 if bulk else 20)
    for name in SEARCHES
    for bulk in ((True, False) if "bulk_look_up" in BLOCKS[name] else (False,))
]


@pytest.mark.parametrize(("name", "bulk", "most"), CASES)
def test_every_record_of_the_relation_is_refreshed(name: str, bulk: bool, most: int, tmp_path: Path) -> None:
    shelf, clock = Shelf.of(60), SetClock(0.0)
    write_relation(name, shelf, tmp_path)

    async def run(site: ApiSite) -> None:
        table = table_of(name, site, tmp_path)
        if not bulk:
            table.pop("bulk_look_up", None)
        source = SearchSource(
            read_settings(SearchSettings, table), SourceContext(clock=clock, resolver=SECRETS.get)
        )
        desk = Desk([key_of(name, number) for number in OWN], clock)
        while len(desk.fetched) < len(OWN) and len(site.asked) <= most:
            clock.time_s += 1.0
            await desk.ask(source)
        check_content(name, shelf, desk)
        assert len(site.asked) <= most, site.asked
        if source.capabilities.batches and "look_up" in table:
            shelf.change(3)
            one = await source.poll(desk.leases[key_of(name, 3)])
            assert (one.kind, one.requests) == ("content", 1)
            del shelf.rows[4]
            gone = await source.poll(lease_of(key_of(name, 4), source="papers"))
            assert gone.kind == "gone", gone
        await source.close()

    with served(name, shelf) as site:
        asyncio.run(run(site))


@pytest.mark.parametrize("name", [name for name, table in BLOCKS.items() if table["kind"] == "api"])
def test_the_records_that_a_server_lists_are_items_and_stay_fresh(name: str, tmp_path: Path) -> None:
    shelf, clock = Shelf.of(60), SetClock(0.0)

    async def run(site: ApiSite) -> None:
        table = table_of(name, site, tmp_path)
        del table["relation"]
        context = SourceContext(clock=clock, resolver=SECRETS.get)
        source = ApiSource(read_settings(ApiSettings, table), context)
        (listing,) = [one async for one in source.listings()]
        wanted = {str(number) for number in shelf.rows if name != "GitHub" or number % 10}
        assert {entry.key for entry in listing.entries} == wanted
        assert listing.complete
        desk = Desk(sorted(wanted), clock)
        await desk.ask(source)
        assert set(desk.fetched) == wanted
        assert all(one.kind == "content" for one in desk.fetched.values())
        assert len(site.asked) == 1  # the contents came with the list
        shelf.change(3, 7)
        changed: set[str] = set()
        while changed != {"3", "7"} and len(site.asked) < 5:
            clock.time_s += 10.0
            changed |= {key for key, one in (await desk.ask(source)).items() if one.kind == "content"}
        assert changed == {"3", "7"}
        assert len(site.asked) <= 3
        await source.close()

    with served(name, shelf) as site:
        asyncio.run(run(site))


def test_each_entry_of_the_table_has_its_section_and_its_server() -> None:
    entries = re.findall(r"^\| \[(.*?)\]\(#", PAGE, re.MULTILINE)
    assert entries == list(BLOCKS)
    assert {name.partition(":")[0] for name in BLOCKS} == set(SHAPES)

"""Records that a web API lists, kept fresh by the whole engine: in virtual time, with a budget."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from tests.virtual_time import VirtualTime

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.settings.parsing import parse_settings
from afresh.sources.http.fetcher import Reply, Request
from afresh.values.items import Item, ItemQuery

COUNT, PAGE = 200, 50


@dataclass
class VirtualApi:
    """A list with ``since`` and pages, and look-ups. It is a fetcher (see ``sources/http/fetcher.py``)."""

    time: VirtualTime
    rows: dict[str, dict[str, object]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def change(self, key: str) -> None:
        old = self.rows.get(key, {"n": 0})
        self.rows[key] = {"id": key, "n": int(str(old["n"])) + 1, "updated": self.time.now_s()}

    async def check_url(self, url: str) -> None:
        del url

    async def fetch(self, request: Request) -> Reply:
        parts = urlsplit(request.url)
        given = dict(parse_qsl(parts.query))
        self.asked.append(parts.path if not given.get("since") else "changes")
        if parts.path == "/list":
            since = float(given.get("since", "0"))
            found = [row for row in self.rows.values() if float(str(row["updated"])) >= since]
            begin = (int(given["page"]) - 1) * PAGE
            answer: object = {"total": len(found), "results": found[begin : begin + PAGE]}
        else:
            answer = self.rows.get(parts.path.removeprefix("/one/"))
        body = json.dumps(answer).encode()
        return Reply(404 if answer is None else 200, {"content-type": "application/json"}, body, len(body))

    async def close(self) -> None:
        return


def engine_on(api: VirtualApi, folder: Path, more: str, cursor: bool) -> Engine:
    since = "&since={cursor}" if cursor else ""
    text = f"""
[budget]
requests = "2/s"
[[source]]
name = "rows"
kind = "api"
list = "http://api.test/list?page={{page}}{since}"
look_up = "http://api.test/one/{{key}}"
key = "id"
fields = ["n"]
page_size = {PAGE}
overlap = "1s"
respect_robots = false
delay = 0
min_interval = 0
{'cursor = "updated"' if cursor else ""}
{more}
"""
    return make_engine(
        parse_settings(text),
        folder,
        seed=1,
        clock=api.time,
        new_loop=api.time.new_loop,
        new_fetcher=lambda *_given: api,
    )


def items_of(engine: Engine) -> dict[str, Item]:
    return {item.key: item for item in engine.store.items.page(ItemQuery(), 1000).items}


def stale(engine: Engine, api: VirtualApi) -> set[str]:
    """The keys whose copy is not what the server has now."""
    found = set()
    for key, row in api.rows.items():
        copy = engine.get(key)
        if copy is None or json.loads(copy.content)["n"] != row["n"]:
            found.add(key)
    return found


@pytest.fixture
def api() -> VirtualApi:
    made = VirtualApi(VirtualTime())
    for number in range(COUNT):
        made.change(f"r{number}")
    return made


def test_a_page_of_changes_is_ranked_above_look_ups_and_keeps_all_fresh(
    api: VirtualApi, tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    with engine_on(api, tmp_path, 'full_every = "1h"', cursor=True) as engine:
        engine.run(for_s=10)
        assert set(items_of(engine)) == set(api.rows)
        assert stale(engine, api) == set()
        api.asked.clear()
        lags = []
        for _ in range(4):
            for key in rng.choice(COUNT, 10, replace=False).tolist():
                api.change(f"r{key}")
            engine.run(for_s=10)
            lags.append(len(stale(engine, api)))
    assert max(lags) == 0
    kinds = {path: api.asked.count(path) for path in set(api.asked)}
    assert kinds["changes"] >= 4
    assert len(api.asked) <= 2 * 50
    assert kinds["changes"] > 0.5 * sum(kinds.values()), kinds


def test_births_and_deaths_are_found(api: VirtualApi, tmp_path: Path) -> None:
    more = 'full_every = "30s"\nlistings_every = "5s"'
    with engine_on(api, tmp_path, more, cursor=True) as engine:
        engine.run(for_s=10)
        api.change("new")
        del api.rows["r7"]
        engine.run(for_s=60)
        found = items_of(engine)
        assert found["new"].version > 0
        assert found["r7"].status == "gone"
        assert {item.status for key, item in found.items() if key != "r7"} == {"active"}


def test_without_a_cursor_pages_of_the_list_refresh_fifty_at_a_time(api: VirtualApi, tmp_path: Path) -> None:
    with engine_on(api, tmp_path, 'full_every = "1h"', cursor=False) as engine:
        engine.run(for_s=10)
        api.asked.clear()
        for number in range(0, COUNT, 5):
            api.change(f"r{number}")
        engine.run(for_s=20)
        assert stale(engine, api) == set()
    assert api.asked.count("/list") >= 4

"""The real Scrapy crawls what afresh lends it: from a project folder, and over HTTP."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings
from tests.engine.living import CLOCK, LivingSite
from tests.servers.site import Answer, Seen
from tests.web.serving import TOKEN, dashboard

from afresh.engine.app import open_engine
from afresh.engine.engine import Engine
from afresh.integrations.scrapy.lessors import open_lessor
from afresh.values.errors import UsageError

ROOT = Path(__file__).parents[3]
PROJECT = """
[budget]
requests = "{budget}/s"
[[source]]
name = "web"
delay = "0s"
first_rest = "0.2s"
allow_private = true
min_interval = 0
respect_robots = false
"""


class TaggedSite(LivingSite):
    """Sends ETags and answers 304. Page 0 is missing, page 1 fails."""

    def __init__(self, rates: list[float], *, seed: int = 1) -> None:
        super().__init__(rates, seed=seed)
        self.statuses: Counter[int] = Counter()

    async def _page(self, seen: Seen, answer: Answer) -> None:
        body = await self.serve(seen.path, seen.headers)
        tag = f'"{blake2b(body, digest_size=8).hexdigest()}"'
        page = int(seen.path.removeprefix("/p/"))
        status = {0: 404, 1: 500}.get(page, 304 if seen.headers.get("if-none-match") == tag else 200)
        self.statuses[status] += 1
        await answer.send(body if status == 200 else b"", status, ETag=tag, Content_Type="text/plain")


def project(folder: Path, site: LivingSite, budget: float) -> None:
    """A project folder with the pages of a site."""
    folder.mkdir()
    (folder / "afresh.toml").write_text(PROJECT.format(budget=budget))
    with open_engine(folder) as engine:
        engine.add(site.urls())


def crawl(folder: Path, lines: str, seconds: float = 0.0) -> dict[str, Any]:
    """Scrapy's statistics of a crawl with these lines in ``settings.py``."""
    (folder / "settings.py").write_text(lines)
    command = [sys.executable, "-m", "tests.integrations.scrapy.spider_run", "settings.py", str(seconds)]
    path = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        command, cwd=folder, env=path, capture_output=True, text=True, check=False, timeout=100 + 2 * seconds
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stderr == ""
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def lines_of_the_docs(which: int) -> str:
    """The lines of ``settings.py`` in docs/howto.md: 0 for a folder, 1 for an address."""
    section = (ROOT / "docs" / "howto.md").read_text().split("### Crawl with Scrapy")[1].split("\n### ")[0]
    blocks: list[str] = re.findall(r"```python\n(ADDONS.*?)```", section, re.DOTALL)
    assert len(blocks[which].splitlines()) <= 5
    return blocks[which]


def check(engine: Engine, site: TaggedSite, found: dict[str, Any]) -> None:
    """Every request was recorded, conditional requests were made, and nothing is left lent."""
    items = engine.store.items.by_id(range(1, 13))
    assert sum(item.polls for item in items) == len(site.requests)
    assert site.statuses[304] >= 5
    assert found["parsed"] == site.statuses[200]
    assert (items[0].problem, items[1].problem) == ("404 Not Found", "500 Internal Server Error")
    assert engine.store.leases.open(CLOCK.now_s()) == []
    for page in range(2, 12):
        copy = engine.get(site.url(page))
        assert copy is not None
        assert copy.content == site.content(page, 0)


def test_the_lines_of_the_docs_crawl_a_project(tmp_path: Path) -> None:
    with TaggedSite([0.0] * 12) as site:
        project(tmp_path / "mirror", site, 40)
        found = crawl(tmp_path, lines_of_the_docs(0) + "CLOSESPIDER_PAGECOUNT = 30\n")
        assert found["finish_reason"] == "closespider_pagecount"
        with open_engine(tmp_path / "mirror") as engine:
            check(engine, site, found)


def test_the_lines_of_the_docs_crawl_over_http(tmp_path: Path) -> None:
    with TaggedSite([0.0] * 12) as site:
        project(tmp_path / "mirror", site, 40)
        with open_engine(tmp_path / "mirror") as engine, dashboard(engine) as web:
            lines = re.sub('AFRESH_URL = ".*?"', f'AFRESH_URL = "{web.address}"', lines_of_the_docs(1))
            lines = re.sub("AFRESH_TOKEN = .*", f'AFRESH_TOKEN = "{TOKEN}"', lines)
            found = crawl(tmp_path, lines + "CLOSESPIDER_PAGECOUNT = 30\n")
            check(engine, site, found)


def test_settings_that_name_no_project_are_refused(tmp_path: Path) -> None:
    for given in ({}, {"AFRESH_PROJECT": "a", "AFRESH_URL": "http://b"}, {"AFRESH_URL": "http://b"}):
        with pytest.raises(UsageError, match="AFRESH_"):
            open_lessor(Settings(given))
    with pytest.raises(UsageError, match=r"there is no afresh\.toml"):
        open_lessor(Settings({"AFRESH_PROJECT": str(tmp_path)}))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_scrapy_is_as_fresh_as_a_run(tmp_path: Path) -> None:
    """Both poll pages with the same changes at the same time, with the same budget."""
    rates = [0.01 * 1.17**place for place in range(40)]
    with LivingSite(rates, seed=3) as crawled, LivingSite(rates, seed=3) as polled:
        polled.started_s, polled.changes = crawled.started_s, crawled.changes
        project(tmp_path / "mirror", crawled, 4)
        project(tmp_path / "run", polled, 4)
        with open_engine(tmp_path / "run") as engine:
            engine.start()
            began_s = CLOCK.now_s()
            crawl(tmp_path, lines_of_the_docs(0), 180.0)
            end_s = CLOCK.now_s()
            engine.stop()
        middle_s = (began_s + end_s) / 2
        spent = [sum(time_s >= middle_s for time_s, _ in site.requests) for site in (crawled, polled)]
        fresh = [site.freshness(middle_s, end_s - 5.0) for site in (crawled, polled)]
        assert fresh[0] >= fresh[1] - 0.03, f"scrapy and run: fresh {fresh}, polls {spent}"

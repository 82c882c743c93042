"""An engine learns the pace of a server that answers only so many requests within any second."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest
from tests.engine.living import LivingSite, engine_for
from tests.engine.virtual_site import VirtualSite
from tests.servers.site import Answer, Seen

from afresh.engine.reporting.group_status import GroupStatus
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.settings.tables import Settings
from afresh.sources.http.fetcher import Reply, Request

LIMIT = 6


class LimitedSite(VirtualSite):
    """Answers ``limit`` requests within any ``window_s`` seconds, and 429 with ``headers`` to all others."""

    def __init__(self, pages: int, *, limit: int = LIMIT, window_s: float = 1.0, **headers: str) -> None:
        super().__init__([0.01] * pages, lasts_s=1000.0)
        self.limit, self.window_s = limit, window_s
        self.refusal = Reply(429, {name.replace("_", "-"): text for name, text in headers.items()})
        self.refused_s: list[float] = []
        self.answered_s: list[float] = []
        self._counted: deque[float] = deque()

    async def fetch(self, request: Request) -> Reply:
        now_s = self.time.now_s()
        while self._counted and self._counted[0] <= now_s - self.window_s:
            self._counted.popleft()
        if len(self._counted) >= self.limit:
            self.refused_s.append(now_s - self.started_s)
            return self.refusal
        self._counted.append(now_s)
        self.answered_s.append(now_s - self.started_s)
        return await super().fetch(request)


def settings_of(budget: str, source: str = "") -> Settings:
    return parse_settings(
        f"""
[budget]
requests = "{budget}"
[[source]]
name = "web"
delay = "0s"
allow_private = true
{source}
"""
    )


def poll(folder: Path, site: LimitedSite, for_s: float, budget: str = "8/s") -> GroupStatus:
    """Run an engine for some seconds; return the status of the site."""
    with site.engine(folder, settings=settings_of(budget)) as engine:
        engine.add(site.urls())
        engine.run(for_s=for_s)
        (group,) = engine.status().groups
    return group


@pytest.mark.parametrize(("headers", "for_s"), [({}, 90.0), ({"retry_after": "1"}, 40.0)])
def test_a_budget_above_the_limit_gets_most_of_the_limit(
    tmp_path: Path, headers: dict[str, str], for_s: float
) -> None:
    site = LimitedSite(200, **headers)
    poll(tmp_path, site, for_s)
    # Before the pace was learned, a budget of 8/s got 24 answers in 40 s from this server.
    assert sum(time_s < 40.0 for time_s in site.answered_s) >= 0.85 * 40 * LIMIT
    assert len(site.answered_s) >= 0.85 * for_s * LIMIT
    assert len(site.refused_s) <= 3


def test_the_pace_is_kept_in_the_store_and_shown(tmp_path: Path) -> None:
    site = LimitedSite(200)
    first = poll(tmp_path, site, 10.0)
    assert 4 < first.pace_per_s < LIMIT
    assert first.most_per_s == first.pace_per_s
    learned = len(site.refused_s)
    after = poll(tmp_path, site, 30.0)
    assert len(site.refused_s) == learned
    assert first.pace_per_s < after.pace_per_s < LIMIT


def test_a_real_server_that_refuses_once_gets_a_lower_pace(tmp_path: Path) -> None:
    class Refusing(LivingSite):
        async def _page(self, seen: Seen, answer: Answer) -> None:
            if len(self.requests) == 3 and not refused:
                refused.append(seen.path)
                await answer.send(b"", 429, Retry_After="0")
            else:
                await super()._page(seen, answer)

    refused: list[str] = []
    with Refusing([0.0] * 6) as site, engine_for(tmp_path, source="respect_robots = false") as engine:
        engine.add(site.urls())
        engine.run(once=True)
        (group,) = engine.status().groups
    assert len(refused) == 1
    assert len({path for _, path in site.requests}) >= 5
    assert 0 < group.pace_per_s < 100

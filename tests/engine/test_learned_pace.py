"""An engine learns the pace of a server that answers only so many requests within any second."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.living import LivingSite, engine_for
from tests.engine.virtual_site import VirtualSite
from tests.servers.site import Answer, Seen

from afresh.engine.engine import Engine
from afresh.engine.reporting.group_status import GroupStatus, pack_backoffs
from afresh.engine.runner.run_access import RunGroups
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import BACKOFFS
from afresh.sources.capabilities import GroupBackoff
from afresh.sources.http.fetcher import Reply, Request
from afresh.sources.http.pacing.pace import Pace

LIMIT = 6


class LimitedSite(VirtualSite):
    """Answers ``limit`` requests within any ``window_s`` seconds, and 429 to all others."""

    def __init__(
        self, pages: int, *, limit: int = LIMIT, window_s: float = 1.0, retry_after: str = ""
    ) -> None:
        super().__init__([0.01] * pages, lasts_s=1000.0)
        self.limit, self.window_s = limit, window_s
        self.refusal = Reply(429, {"retry-after": retry_after} if retry_after else {})
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


def poll(folder: Path, site: LimitedSite, for_s: float, source: str = "") -> GroupStatus:
    """Run an engine for some seconds; return the status of the site."""
    with site.engine(folder, settings=settings_of("8/s", source)) as engine:
        engine.add(site.urls())
        engine.run(for_s=for_s)
        (group,) = engine.status().groups
    return group


@pytest.mark.parametrize(("retry_after", "for_s"), [("", 75.0), ("1", 40.0)])
def test_a_budget_above_the_limit_gets_most_of_the_limit(
    tmp_path: Path, retry_after: str, for_s: float
) -> None:
    site = LimitedSite(600, retry_after=retry_after)
    poll(tmp_path, site, for_s)
    # Before the pace was learned, a budget of 8/s got 24 answers in 40 s from this server.
    assert sum(time_s < 40.0 for time_s in site.answered_s) >= 0.85 * 40 * LIMIT
    assert len(site.answered_s) >= 0.85 * for_s * LIMIT
    assert len(site.refused_s) <= 3


def test_the_pace_is_kept_in_the_store_and_shown(tmp_path: Path) -> None:
    site = LimitedSite(300)
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


def test_a_quota_in_headers_is_never_exceeded(tmp_path: Path) -> None:
    class Counting(LimitedSite):
        async def fetch(self, request: Request) -> Reply:
            reply = await super().fetch(request)
            left = self.limit - len(self._counted)
            reset_s = self._counted[0] + self.window_s - self.time.now_s()
            told = {"x-ratelimit-remaining": str(left), "x-ratelimit-reset": f"{math.ceil(reset_s)}"}
            return replace(reply, headers={**reply.headers, **told})

    site = Counting(200, limit=60, window_s=60.0)
    poll(tmp_path, site, 150.0)
    assert site.refused_s == []
    assert len(site.answered_s) >= 0.85 * 150


def test_a_quota_of_the_settings_is_kept_across_a_restart(tmp_path: Path) -> None:
    site = LimitedSite(300, limit=1000)
    for _ in range(2):
        poll(tmp_path, site, 10.0, 'quota = "100/20s"\nrespect_robots = false')
    # The budget of 8/s alone would allow 160 requests in these 20 s.
    assert 95 <= len(site.answered_s) <= 100


def test_the_pace_goes_with_the_claim_on_its_host(tmp_path: Path) -> None:
    async def work(site: VirtualSite, engine: Engine) -> tuple[float, Pace | None]:
        run = await engine.open_run()
        group = site.root.removeprefix("http://")
        learned = GroupBackoff(group, 0.0, pace=Pace(0.5, 0.6))
        engine.store.state.set({BACKOFFS + "web": pack_backoffs([learned])})  # as another worker does
        await run.context.sources.inherit([group])
        known = run.context.sources.backoff("web", group)
        await run.close()
        delay_s = RunGroups(run, site.time.now_s()).delay_s("web", group)
        return delay_s, None if known is None else known.pace

    with VirtualSite([0.0] * 2) as site, site.engine(tmp_path, settings=settings_of("8/s")) as engine:
        engine.add(site.urls())
        assert site.time.run(work(site, engine)) == (2.0, Pace(0.5, 0.6))

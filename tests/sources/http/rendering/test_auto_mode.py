"""``render = "auto"`` on a site with static pages and pages made by scripts, in a real browser."""

from __future__ import annotations

from collections.abc import Mapping

from tests.sources.http.rendering.test_rendering_fetcher import Rendering, with_browser
from tests.sources.polling import lease_of, lease_with_copy
from tests.waiting import until_async

from afresh.sources.context import SourceContext
from afresh.sources.http.rendering.modes import RenderModes
from afresh.sources.http.saved_hosts import HttpState, read_state
from afresh.sources.http.source import HttpSource
from afresh.values.lease import Lease


def learned(needed: Mapping[str, bool]) -> bytes:
    """The saved state of a source that has compared four pages of each class."""
    modes = RenderModes("auto")
    for name, each in needed.items():
        for _ in range(4):
            modes.learn(name, needed=each)
    return HttpState(render=modes.save()).pack()


def test_a_class_of_static_pages_is_polled_without_the_browser_and_audited_with_it() -> None:
    async def visit(given: Rendering) -> None:
        site, source = given.site, given.source
        static, app = f"{site.url}/static/1", f"{site.url}/app/1"
        source.load_state(learned({static: False, app: True}))
        first = await source.poll(lease_of(static))  # the fifth page that agrees
        assert "rendered" in first.validators
        lease = lease_with_copy(lease_of(static), first)
        second = await source.poll(lease)
        assert (second.comparable, "rendered" in second.validators) == (False, False)
        assert second.requests == 1
        lease = lease_with_copy(lease, second)
        audit = await source.poll(lease, conditional=False)
        assert (audit.kind, audit.comparable) == ("unchanged", True)
        made = await source.poll(lease_of(app))
        assert b"costs 3 EUR today" in (made.content or b"")
        assert source.render_modes.choose(app, audit=False) == "render"
        assert source.render_modes.choose(static, audit=False) == "plain"
        assert learned_again(source).choose(static, audit=False) == "plain"

    with_browser(visit, render="auto", respect_robots=False)


def learned_again(source: HttpSource) -> RenderModes:
    modes = RenderModes("auto")
    modes.load(read_state(source.save_state()).render)
    return modes


def test_every_request_of_a_rendering_uses_the_budget() -> None:
    admitted: list[str] = []

    async def admit(group: str) -> None:
        admitted.append(group)

    async def visit(given: Rendering) -> None:
        source = HttpSource(given.settings, SourceContext(admit=admit), given.fetcher)
        lease: Lease = lease_of(f"{given.site.url}/shop")
        found = await source.poll(lease)
        again = await source.poll(lease_with_copy(lease, found))
        assert found.requests + again.requests == len(given.site.paths()) == 4
        # Those beside the first of each page are paid afterwards.
        await until_async(lambda: len(admitted) >= 4, "every request is paid")
        assert len(admitted) == 4

    with_browser(visit, respect_robots=False)

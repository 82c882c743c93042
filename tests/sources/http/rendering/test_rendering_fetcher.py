"""Pages as a real browser shows them: made by scripts, lazily loaded, for members; and what it may not do."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.servers.site import Answer, Seen, page
from tests.sources.http.fake_names import FakeNames
from tests.sources.http.rendering.app_site import AppSite
from tests.sources.polling import lease_of, lease_with_copy, quick_settings
from tests.waiting import until_async
from tests.web.browser import CHROMIUM

from afresh.sources.context import SourceContext
from afresh.sources.http.aiohttp_fetcher import AiohttpFetcher
from afresh.sources.http.fetcher import Request
from afresh.sources.http.rendering.browser import BrowserHost, _measure
from afresh.sources.http.rendering.loopback_proxy import LoopbackProxy
from afresh.sources.http.rendering.process_tree import (
    descendants,
    memory_bytes,
    option_of,
    own_child_above,
    program_of,
)
from afresh.sources.http.rendering.rendering_fetcher import RenderingFetcher, browser_proxy
from afresh.sources.http.rendering.rules import BrowserRules
from afresh.sources.http.settings import HttpSettings, make_fetcher
from afresh.sources.http.source import HttpSource
from afresh.values.clock import SystemClock
from afresh.values.errors import UsageError

QUICK = {"render": "always", "browser": str(CHROMIUM), "render_scrolls": 0}


class Rendering(NamedTuple):
    """A site, and a source that renders its pages."""

    site: AppSite
    source: HttpSource
    fetcher: RenderingFetcher
    settings: HttpSettings


@asynccontextmanager
async def rendering(**changes: object) -> AsyncIterator[Rendering]:
    settings, context = quick_settings(**{**QUICK, **changes}), SourceContext()
    fetcher = make_fetcher(settings, context)
    assert isinstance(fetcher, RenderingFetcher)
    source = HttpSource(settings, context, fetcher)
    async with AppSite() as site:
        try:
            yield Rendering(site, source, fetcher, settings)
        finally:
            await source.close()


def with_browser(visit: Callable[[Rendering], Awaitable[None]], **changes: object) -> None:
    async def work() -> None:
        async with rendering(**changes) as given:
            await visit(given)

    asyncio.run(work())


async def ended(processes: list[int]) -> None:
    """Wait until none of these processes runs."""
    await until_async(lambda: not any(map(program_of, processes)), "the processes end")


def test_what_scripts_make_of_a_page_is_its_content() -> None:
    async def visit(given: Rendering) -> None:
        site, source = given.site, given.source
        lease = lease_of(f"{site.url}/shop")
        first = await source.poll(lease)
        assert (first.kind, first.problem) == ("content", "")
        assert b"costs 3 EUR today" in (first.content or b"")
        assert site.paths() == ["/shop", "/price.json"]  # and no picture
        assert first.requests == 3  # robots.txt too
        assert "etag" not in first.validators
        lease = lease_with_copy(lease, first)
        again = await source.poll(lease)
        assert (again.kind, again.requests) == ("unchanged", 2)
        site.price = 4
        changed = await source.poll(lease)
        assert (changed.kind, changed.comparable) == ("content", True)
        # A redirect is followed as in a plain poll, and a file that is no page is taken as it is.
        moved = await source.poll(lease_of(f"{site.url}/moved"))
        assert moved.validators["url"] == f"{site.url}/shop"
        text = await source.poll(lease_of(f"{site.url}/file.txt"))
        assert (text.content, text.media_type) == (b"only words", "text/plain")
        missing = await source.poll(lease_of(f"{site.url}/nowhere"))
        assert (missing.kind, missing.status) == ("gone", 404)

    with_browser(visit)


def test_lists_that_load_as_one_scrolls_are_loaded() -> None:
    async def visit(given: Rendering) -> None:
        site, source = given.site, given.source
        found = await source.poll(lease_of(f"{site.url}/list"))
        assert b"row number 60<" in (found.content or b"")

    with_browser(visit, render_scrolls=5)


def test_a_saved_login_opens_pages_for_members(tmp_path: Path) -> None:
    state = tmp_path / "state.json"

    async def visit(given: Rendering) -> None:
        site, source = given.site, given.source
        found = await source.poll(lease_of(f"{site.url}/members"))
        assert b"news for members" in (found.content or b"")

    cookie = {"name": "session", "value": "member", "domain": "127.0.0.1", "path": "/", "expires": -1}
    cookie |= {"httpOnly": True, "secure": False, "sameSite": "Lax"}
    state.write_text(json.dumps({"cookies": [cookie], "origins": []}))
    with_browser(visit, render_state=str(state), render_wait="#news:not(:empty)")


def test_a_script_that_leads_to_the_login_is_a_redirect() -> None:
    async def visit(given: Rendering) -> None:
        site, source = given.site, given.source
        found = await source.poll(lease_of(f"{site.url}/members"))
        assert (found.kind, found.problem) == ("refused", "robots.txt forbids it")
        assert "/login" not in "".join(site.paths())

    with_browser(visit)
    with_browser(_login, respect_robots=False)


async def _login(given: Rendering) -> None:
    site, source = given.site, given.source
    site.routes["/login"] = site.routes["/static/1"]
    found = await source.poll(lease_of(f"{site.url}/members"))
    assert (found.kind, found.problem) == ("refused", f"leads to a login page: {site.url}/login")


ASK = """async address => {
  await fetch("http://" + address, {mode: "no-cors"}).catch(() => 0);
  await new Promise(done => { const s = new WebSocket("ws://" + address); s.onerror = s.onopen = done; });
  const image = new Image();
  await new Promise(done => { image.onerror = image.onload = done; image.src = "http://" + address; });
}"""


def test_nothing_that_a_page_asks_for_reaches_a_private_address() -> None:
    async def visit() -> None:
        host = BrowserHost(BrowserRules(str(CHROMIUM)))
        async with AppSite() as site, host.using() as (browser, proxy):
            visit = proxy.open_visit(10**6)
            context = await browser.new_context(proxy=browser_proxy(proxy, visit), service_workers="block")
            page = await context.new_page()
            for name in ("127.0.0.1", "localhost", "metadata.google.internal", "169.254.169.254", "[::1]"):
                await page.evaluate(ASK, f"{name}:{site.port}/file.txt")
            await context.close()
        await host.close()
        assert site.seen == []
        assert set(visit.refused) == {
            "127.0.0.1", "localhost", "metadata.google.internal", "169.254.169.254", "::1"
        }  # fmt: skip

    asyncio.run(visit())


def test_the_browser_reaches_no_private_address_whatever_the_first_check_says() -> None:
    async def visit() -> None:
        rules = replace(quick_settings(**QUICK).render_rules, browser=BrowserRules(str(CHROMIUM)))
        plain = AiohttpFetcher(trusted_hosts=["127.0.0.1"])
        fetcher = RenderingFetcher(plain, rules, SystemClock())
        async with AppSite() as site:
            reply = await fetcher.fetch(Request(f"{site.url}/shop", render=True))
            await fetcher.close()
            assert (reply.trouble, reply.problem) == ("private", "refused: 127.0.0.1 is a loopback address")
            assert site.paths() == ["/shop"]  # which the fetcher may reach; its script may not

    asyncio.run(visit())


def test_a_page_whose_name_turns_into_this_machine_reads_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DNS rebinding by the script of a page: its own name leads to another address the second time."""

    async def visit() -> None:
        async with AppSite() as site:

            async def connect(address: str, _: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
                opened.append(address)
                return await asyncio.open_connection("127.0.0.1", site.port)

            opened, table = list[str](), {"attacker.test": ["127.0.0.1"]}
            proxy = partial(LoopbackProxy, resolver=FakeNames(table), connect=connect)
            monkeypatch.setattr("afresh.sources.http.rendering.browser.LoopbackProxy", proxy)
            site.leak = "/file.txt"
            plain = AiohttpFetcher(resolver=FakeNames(table), trusted_hosts=["attacker.test"])
            rules = replace(quick_settings(**QUICK).render_rules, browser=BrowserRules(str(CHROMIUM)))
            fetcher = RenderingFetcher(plain, rules, SystemClock())
            reply = await fetcher.fetch(Request(f"http://attacker.test:{site.port}/leak", render=True))
            await fetcher.close()
            assert (reply.trouble, opened) == ("private", [])
            assert b"only words" not in reply.body
            assert site.paths() == ["/leak"]

    asyncio.run(visit())


def test_a_browser_that_was_killed_is_started_again_and_none_is_left() -> None:
    async def visit(given: Rendering) -> None:
        site, source = given.site, given.source
        assert (await source.poll(lease_of(f"{site.url}/shop"))).kind == "content"
        first = given.fetcher.host.process
        kept, profile = descendants(first), Path(option_of(first, "--user-data-dir"))
        assert len(kept) > 1
        assert profile.is_dir()
        os.kill(first, signal.SIGKILL)
        await ended([first])
        found = await source.poll(lease_of(f"{site.url}/shop"))
        if found.kind == "failed":  # it was just about to be noticed
            found = await source.poll(lease_of(f"{site.url}/shop"))
        assert found.kind == "content"
        second = given.fetcher.host.process
        assert second not in (0, first)
        assert not profile.exists()
        kept += descendants(second)
        await source.close()
        await ended(kept)

    with_browser(visit)


def test_a_browser_that_takes_too_much_memory_is_ended() -> None:
    async def visit(given: Rendering) -> None:
        site, source = given.site, given.source
        found = await source.poll(lease_of(f"{site.url}/endless"))
        assert found.kind == "failed"
        assert found.problem == "the browser needs more than 1 MB of memory"

    with_browser(visit, browser_memory="1MB", timeout="1h")  # which is not waited for


@pytest.mark.parametrize("media_type", ["text/plain", "text/html"])
def test_an_answer_that_unpacks_to_gigabytes_is_refused_and_takes_little_memory(media_type: str) -> None:
    """Playwright's driver would unpack it without a limit, whatever its type."""
    bomb = gzip.compress(bytes(300_000_000), 1)

    async def visit(given: Rendering) -> None:
        site, source = given.site, given.source
        assert (await source.poll(lease_of(f"{site.url}/shop"))).kind == "content"
        driver = own_child_above(given.fetcher.host.process)
        before_kb = peak_kb(driver)
        site.routes["/bomb"] = page(bomb, Content_Type=media_type, Content_Encoding="gzip")
        found = await source.poll(lease_of(f"{site.url}/bomb"))
        assert (found.kind, found.problem) == ("failed", "body is larger than 4000000 bytes")
        assert (await source.poll(lease_of(f"{site.url}/shop"))).kind == "content"
        assert peak_kb(driver) - before_kb < 100_000

    with_browser(visit)


def peak_kb(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def test_the_memory_of_the_driver_counts_too() -> None:
    """A page that writes long texts to the console makes the driver grow, not the browser."""

    async def visit(given: Rendering) -> None:
        await given.source.poll(lease_of(f"{given.site.url}/shop"))
        browser = given.fetcher.host.process
        driver = own_child_above(browser)
        assert driver not in (0, browser, os.getpid())
        taken, known = _measure(browser, driver)
        assert taken - memory_bytes(browser) > 10_000_000
        assert driver not in known  # which are the processes that are killed as the browser's
        await given.source.close()
        await ended([driver])

    with_browser(visit)


def test_cookies_that_a_page_sets_are_sent_by_its_scripts() -> None:
    script = b"<!doctype html><body><script>fetch('/said')</script><p>words</p>"

    async def set_two(_seen: Seen, answer: Answer) -> None:
        head = "HTTP/1.1 200 X\r\nContent-Type: text/html\r\nX-Odd: \xe9\r\nSet-Cookie: a=1; Path=/\r\n"
        head += "Set-Cookie: b=2; expires=Wed, 01 Jan 2100 00:00:00 GMT; HttpOnly\r\n"
        await answer.raw(f"{head}Content-Length: {len(script)}\r\n\r\n".encode("latin-1") + script)

    async def visit(given: Rendering) -> None:
        site = given.site
        site.routes |= {"/sets": set_two, "/said": page(b"x")}
        found = await given.source.poll(lease_of(f"{site.url}/sets"))
        assert b"words" in (found.content or b""), found.problem
        sent = {seen.path: seen.headers.get("cookie", "") for seen in site.seen}
        assert sent["/sets"] == "own=3"
        assert set(sent["/said"].split("; ")) == {"own=3", "a=1", "b=2"}

    with_browser(visit, respect_robots=False, cookies={"own": "3"})


def test_a_page_that_crashes_fails_at_once_and_the_next_is_rendered() -> None:
    async def visit(given: Rendering) -> None:
        site, source = given.site, given.source
        poll = asyncio.create_task(source.poll(lease_of(f"{site.url}/endless")))
        await until_async(lambda: "/price.json" in site.paths(), "the page runs its script")
        for process in descendants(given.fetcher.host.process):
            with suppress(OSError):  # some other process of the browser that has ended meanwhile
                if b"--type=renderer" in Path(f"/proc/{process}/cmdline").read_bytes():
                    os.kill(process, signal.SIGKILL)
        found = await poll
        assert (found.kind, found.problem) == ("failed", "not rendered: the page crashed")
        assert (await source.poll(lease_of(f"{site.url}/shop"))).kind == "content"

    with_browser(visit, timeout="1h")


def test_a_page_that_is_never_quiet_fails_in_time() -> None:
    async def visit(given: Rendering) -> None:
        site, source = given.site, given.source
        found = await source.poll(lease_of(f"{site.url}/endless"))
        assert (found.kind, found.problem) == ("failed", "not rendered within 5 s")

    with_browser(visit, timeout="5s", render_wait="#never")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"browser": "/nowhere/chromium"}, "browser: there is no program /nowhere/chromium"),
        ({"proxy": "http://127.0.0.1:1"}, "render and proxy exclude each other"),
        ({"render_state": "/nowhere/state.json"}, "render_state: there is no file"),
        ({"render_wait": "p["}, "render_wait: 'p\\[' is not a CSS selector"),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make_fetcher(quick_settings(**{**QUICK, **changes}), SourceContext())

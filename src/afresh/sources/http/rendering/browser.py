"""A Chromium of the user, driven by Playwright: started when it is first needed, replaced when it ends.

The browser gets no environment variables but its folders, no names to resolve, and no network but the proxy.
It is closed after ``_MOST_PAGES`` pages, and started again for the next page; also when it takes more memory
than allowed, together with Playwright's driver, a process between the browser and this one. If it crashes or
is killed, the pages that it was rendering fail, and the next one starts another.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afresh.sources.http.rendering.loopback_proxy import LoopbackProxy
from afresh.sources.http.rendering.process_tree import (
    descendants,
    find_marked,
    kill_tree,
    memory_bytes,
    option_of,
    own_child_above,
    program_of,
)
from afresh.sources.http.rendering.rules import BrowserRules
from afresh.values.errors import UsageError
from afresh.values.leftovers import LEFTOVERS

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
_MOST_PAGES = 100
_WATCHED_EVERY_S = 0.5
_CLOSE_S = 10.0
_LOOKED_FOR_EVERY_S = 0.05
_START_S = 120.0
_ARGUMENTS = (
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--dns-prefetch-disable",
    "--no-first-run",
    "--no-pings",
    "--mute-audio",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # only the proxy resolves names
)


class BrowserGoneError(Exception):
    """The browser could not be started, or has ended; the message says why."""


def find_browser(program: str) -> str:
    """Return the path of the browser. Raise ``UsageError`` if it, or Playwright, is not installed."""
    if find_spec("playwright") is None:
        raise UsageError("rendering needs Playwright: pip install 'afresh[browser]'")
    if program:
        if not os.access(program, os.X_OK) or not Path(program).is_file():
            raise UsageError(f"browser: there is no program {program}")
        return program
    found = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if found is None:
        raise UsageError(f"browser: none of {', '.join(_PROGRAMS)} is installed: give the path of a Chromium")
    return found


@dataclass(eq=False)
class _Running:
    """A browser that runs, with its proxy and the folder of its profile. ``driver`` is the process of
    Playwright that started it. ``process`` and ``driver`` are 0, and ``profile`` empty, if the process could
    not be found."""

    playwright: Playwright
    browser: Browser
    proxy: LoopbackProxy
    process: int
    listed: ExitStack
    pages: int = 0
    users: int = 0
    problem: str = ""
    is_retired: bool = False
    program: str = ""
    driver: int = 0
    driver_program: str = ""
    profile: str = ""
    known: set[int] = field(default_factory=set)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def kill(self) -> None:
        if self.process:
            kill_tree(self.process, self.known, self.program)

    def kill_driver(self) -> None:
        """Kill the driver, if it is still there, without the browser's processes."""
        if self.driver:
            kill_tree(self.driver, (), self.driver_program)


class BrowserHost:
    """Starts and ends the browser. All methods run on one event loop."""

    def __init__(self, rules: BrowserRules) -> None:
        self._rules, self._program = rules, find_browser(rules.program)
        self._lock = asyncio.Lock()
        self._running: _Running | None = None
        self._is_closed = False

    @property
    def process(self) -> int:
        """The id of the browser's process; 0 while there is none."""
        return self._running.process if self._running is not None else 0

    @asynccontextmanager
    async def using(self) -> AsyncIterator[tuple[Browser, LoopbackProxy]]:
        """Yield the browser and its proxy. Raise ``BrowserGoneError`` if the browser cannot be started, or
        ended inside the block, whatever else was raised there."""
        running = await self._started()
        running.users += 1
        running.pages += 1
        try:
            yield running.browser, running.proxy
        except Exception as error:
            if not running.browser.is_connected():
                raise BrowserGoneError(running.problem or "the browser ended") from error
            raise
        finally:
            running.users -= 1
            if running.pages >= _MOST_PAGES or not running.browser.is_connected():
                self._retire(running)
            if running.is_retired and running.users == 0:
                await self._end(running)

    async def close(self) -> None:
        """End the browser. It may be called twice."""
        self._is_closed = True
        async with self._lock:
            running = self._running
            if running is not None:
                self._retire(running)
                await self._end(running)

    async def _started(self) -> _Running:
        async with self._lock:
            if self._is_closed:
                raise BrowserGoneError("the source is closed")
            running = self._running
            if running is not None and not running.browser.is_connected():
                self._retire(running)
                await self._end(running)
                running = None
            if running is None:
                running = self._running = await self._start()
            return running

    def _retire(self, running: _Running) -> None:
        running.is_retired = True
        if self._running is running:
            self._running = None

    async def _start(self) -> _Running:
        from playwright.async_api import Error, async_playwright

        proxy, mark = LoopbackProxy(allow_private=self._rules.allow_private), secrets.token_hex(8)
        await proxy.start()
        playwright = await async_playwright().start()
        try:
            browser = await playwright.chromium.launch(
                executable_path=self._program,
                args=[*_ARGUMENTS, f"--afresh-browser={mark}"],
                # Without the credentials of a visit, the proxy serves nobody.
                proxy={"server": f"http://127.0.0.1:{proxy.port}", "bypass": "<-loopback>"},
                chromium_sandbox=os.geteuid() != 0,
                env={name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ},
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                timeout=1000 * _START_S,
            )
        except Error as error:
            await playwright.stop()
            await proxy.close()
            raise BrowserGoneError(f"the browser does not start: {first_line(error)}") from None
        process, listed = find_marked(f"--afresh-browser={mark}") or 0, ExitStack()
        running = _Running(playwright, browser, proxy, process, listed, program=program_of(process))
        if process:
            listed.enter_context(LEFTOVERS.process(process))
            running.driver = own_child_above(process)
            running.driver_program = program_of(running.driver)
            running.profile = option_of(process, "--user-data-dir")
            if running.profile:
                listed.enter_context(LEFTOVERS.path(running.profile))
        running.known.update(descendants(process) if process else ())
        running.tasks.append(asyncio.create_task(self._watch(running)))
        return running

    async def _watch(self, running: _Running) -> None:
        """Kill the browser when it and the driver take too much memory: a page can make the driver take much,
        too, by what it writes to the console or asks for."""
        while running.process:
            await asyncio.sleep(_WATCHED_EVERY_S)
            taken, found = await asyncio.to_thread(_measure, running.process, running.driver)
            running.known |= found
            if taken > self._rules.most_memory:
                megabytes = self._rules.most_memory / 1e6
                running.problem = f"the browser needs more than {megabytes:.0f} MB of memory"
                running.kill()
                return

    async def _end(self, running: _Running) -> None:
        from playwright.async_api import Error

        for task in running.tasks:
            task.cancel()
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await running.browser.close()
        running.kill()
        # Playwright removes the folders of a browser when it notices its end, unless it is stopped before.
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                while running.profile and Path(running.profile).exists():
                    await asyncio.sleep(_LOOKED_FOR_EVERY_S)
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await running.playwright.stop()
        running.kill_driver()
        if running.profile:  # what a process of the browser wrote while Playwright removed it
            await asyncio.to_thread(shutil.rmtree, running.profile, ignore_errors=True)
        await running.proxy.close()
        running.listed.close()


def _measure(process: int, driver: int) -> tuple[int, set[int]]:
    return memory_bytes(driver), set(descendants(process))


def first_line(error: Any) -> str:
    """Return the first line of an error of Playwright, without the name of the call."""
    line = str(getattr(error, "message", error)).strip().splitlines()[:1] or ["no reason given"]
    return line[0].partition(": ")[2][:200] or line[0][:200]

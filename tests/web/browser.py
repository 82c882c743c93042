"""Debian's chromium, headless, and an ear for everything that a page asks for or complains about."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, expect, sync_playwright

CHROMIUM = Path("/usr/bin/chromium-headless-shell")
PATIENCE_MS = 60_000  # every wait is for a condition; the limit only says when to give up
FLAGS = [
    "--no-sandbox",  # as root there is none
    "--disable-gpu",
    # Drawing runs in a thread of the browser. In a process of its own it can crash or be killed, and after
    # six times the whole browser ends with "GPU process isn't usable. Goodbye."
    "--in-process-gpu",
    "--disable-dev-shm-usage",  # in a container the shared memory is often 64 MB
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--enable-logging",  # to the file of CHROME_LOG_FILE, read when the browser dies
]
PHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1240, "height": 900}
_LOG_LINES = 40
_NO_CHARTS, _SCRIPT = "window.Plotly = { react() {} };", "text/javascript"


@contextmanager
def chromium(folder: Path) -> Iterator[tuple[Browser, Path]]:
    """A browser, and the log that it writes in ``folder``; ``make chromium`` installs it."""
    assert CHROMIUM.exists(), "there is no chromium: 'make chromium' installs Debian's"
    log = folder / "chromium.log"
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM),
            args=FLAGS,
            env={**os.environ, "CHROME_LOG_FILE": str(log)},
            timeout=2 * PATIENCE_MS,
        )
        try:
            yield browser, log
        finally:
            browser.close()


def last_words(log: Path) -> str:
    """The end of a browser's log, without its complaints about the desktop that is not there."""
    if not log.exists():
        return "it left no log"
    lines = [line for line in log.read_text(errors="replace").splitlines() if "dbus" not in line]
    return "\n".join(lines[-_LOG_LINES:])


class Ear:
    """What a page asked for, and its complaints."""

    def __init__(self, page: Page) -> None:
        self.asked: set[str] = set()
        self.complaints: list[str] = []
        page.on("request", lambda request: self.asked.add(urlsplit(request.url).netloc or request.url[:20]))
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _hear(self, said: ConsoleMessage) -> None:
        if said.type in ("error", "warning"):
            self.complaints.append(said.text)


@contextmanager
def page_of(
    browser: Browser, viewport: ViewportSize = DESK, *, alone: bool = False, charts: bool = True
) -> Iterator[tuple[Page, Ear]]:
    """A new tab, and its ear.

    Tabs share what the browser has cached. One that keeps settings or changes the clock is ``alone``, without
    anything of others and without leaving anything to them. Without ``charts`` nothing is drawn: to load the
    library and to draw takes two seconds of a core each time, for tests that look at something else.
    """
    context = browser.contexts[0] if browser.contexts and not alone else browser.new_context()
    page = context.new_page()
    page.set_viewport_size(viewport)
    page.set_default_timeout(PATIENCE_MS)
    if not charts:
        page.route(
            "**/static/plotly.js?*", lambda route: route.fulfill(body=_NO_CHARTS, content_type=_SCRIPT)
        )
    try:
        yield page, Ear(page)
    finally:
        page.close()
        if alone:
            context.close()


LOOKS = ("light", "dark", "phone")


def as_seen(page: Page, look: str) -> None:
    """Show a page that is open in other colours, or on a phone, and wait until it has taken them on."""
    # Without motion: colours that are still changing would be judged by their contrast of that moment.
    page.emulate_media(color_scheme="dark" if look == "dark" else "light", reduced_motion="reduce")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark" if look == "dark" else "light")
    page.set_viewport_size(PHONE if look == "phone" else DESK)
    page.wait_for_function("() => document.documentElement.scrollWidth <= innerWidth")


def cut(page: Page) -> int:
    """By how many pixels the widest table goes beyond its place."""
    each = "(all) => all.map((one) => one.scrollWidth - one.clientWidth)"
    return max(page.locator(".scroll").evaluate_all(each), default=0)


_CONTRAST = "color-contrast"
# Every rule in light colours; what else the other looks can change: the colours, or the layout.
_RULES: dict[str, dict[str, Any]] = {
    "light": {},
    "dark": {"runOnly": [_CONTRAST]},
    "phone": {"rules": {_CONTRAST: {"enabled": False}}},
}


def serious(page: Page, look: str) -> list[str]:
    """What axe-core holds against a page in one of the looks, from serious on."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    options = {"resultTypes": ["violations"], **_RULES[look]}
    found = page.evaluate("(options) => axe.run(options)", options)
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]

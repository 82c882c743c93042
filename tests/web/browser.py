"""Debian's chromium, headless, and an ear for everything that a page asks for or complains about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1240, "height": 900}


@contextmanager
def chromium() -> Iterator[Callable[[], Browser]]:
    """A browser for whoever asks, another where the last has died; ``make chromium`` installs it."""
    assert CHROMIUM.exists(), "there is no chromium: 'make chromium' installs Debian's"
    with sync_playwright() as playwright:
        launched: list[Browser] = []

        def alive() -> Browser:
            if not launched or not launched[-1].is_connected():
                launched.append(playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS))
            return launched[-1]

        yield alive
        for browser in launched:
            browser.close()


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
def page_of(browser: Browser, **options: Any) -> Iterator[tuple[Page, Ear]]:
    """A new window, and its ear."""
    context = browser.new_context(**({"viewport": DESK} | options))
    page = context.new_page()
    page.set_default_timeout(20_000)
    try:
        yield page, Ear(page)
    finally:
        context.close()


def cut(page: Page) -> int:
    """By how many pixels the widest table goes beyond its place."""
    each = "(all) => all.map((one) => one.scrollWidth - one.clientWidth)"
    return max(page.locator(".scroll").evaluate_all(each), default=0)


def serious(page: Page) -> list[str]:
    """What axe-core holds against a page, from serious on."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]

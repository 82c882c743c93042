"""The add-on that switches scheduler and middleware on, so that ``settings.py`` needs only a few lines."""

from __future__ import annotations

from scrapy.settings import BaseSettings

_MIDDLEWARE_ORDER = 585
"""Between Scrapy's redirects and decompression (from 590 on), which come first, and its retries (550)."""


class AfreshAddon:
    """Sets ``SCHEDULER`` and adds the downloader middleware, unless the project has set its own."""

    def update_settings(self, settings: BaseSettings) -> None:
        settings.set("SCHEDULER", "afresh.integrations.scrapy.LeaseScheduler", priority="addon")
        middlewares = settings.getwithbase("DOWNLOADER_MIDDLEWARES")
        path = "afresh.integrations.scrapy.ReportMiddleware"
        if path not in middlewares:
            settings["DOWNLOADER_MIDDLEWARES"][path] = _MIDDLEWARE_ORDER

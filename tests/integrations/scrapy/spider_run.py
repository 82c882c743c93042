"""Runs one spider: ``python -m tests.integrations.scrapy.spider_run SETTINGS_FILE SECONDS``.

Prints Scrapy's statistics as JSON, and how many responses the spider got.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import AsyncIterator
from typing import Any

import scrapy
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response

QUIET = {"LOG_LEVEL": "WARNING", "TELNETCONSOLE_ENABLED": False, "ROBOTSTXT_OBEY": False}


class Mirror(scrapy.Spider):
    """Has no requests of its own: what it crawls is lent to it."""

    name = "mirror"
    parsed = 0

    async def start(self) -> AsyncIterator[Any]:
        no_requests: tuple[Any, ...] = ()
        for request in no_requests:
            yield request

    def parse(self, response: Response, **_named: Any) -> None:
        type(self).parsed += bool(response.body)


def main(file: str, seconds: float) -> None:
    given = {name: value for name, value in runpy.run_path(file).items() if name.isupper()}
    process = AsyncCrawlerProcess(QUIET | {"CLOSESPIDER_TIMEOUT": seconds} | given)
    crawler = process.create_crawler(Mirror)
    process.crawl(crawler)
    process.start()
    assert crawler.stats is not None
    numbers = {
        name: value for name, value in crawler.stats.get_stats().items() if isinstance(value, int | str)
    }
    sys.stdout.write(json.dumps(numbers | {"parsed": Mirror.parsed}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))

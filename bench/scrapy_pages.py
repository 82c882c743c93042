"""Scrapy fetching pages of a loopback site: ``python -m bench.scrapy_pages PORT PAGES``.

Prints pages, wall and processor seconds. As quick as it can be told to be: no delay, no robots.txt, no log,
no retries, no cookies, nothing kept.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess

from bench.polling import AT_ONCE

SETTINGS = {
    "CONCURRENT_REQUESTS": AT_ONCE,
    "CONCURRENT_REQUESTS_PER_DOMAIN": AT_ONCE,
    "DOWNLOAD_DELAY": 0,
    "ROBOTSTXT_OBEY": False,
    "RETRY_ENABLED": False,
    "COOKIES_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_ENABLED": False,
}


class Pages(scrapy.Spider):
    """Fetches pages 1 to N of the site, and counts them."""

    name = "pages"
    port: int
    pages: int
    seen = 0

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """Yield all requests."""
        for number in range(self.pages):
            yield scrapy.Request(f"http://127.0.0.1:{self.port}/{number}", dont_filter=True)

    def parse(self, response: scrapy.http.Response, **_named: Any) -> None:
        """Count the complete responses."""
        type(self).seen += response.status == 200 and bool(response.body)


def main(port: int, pages: int) -> None:
    """Crawl, and print the time, without that of setting up."""
    process = CrawlerProcess(SETTINGS)
    process.crawl(Pages, port=port, pages=pages)
    start_s, cpu_s = time.perf_counter(), time.process_time()
    process.start()
    print(Pages.seen, time.perf_counter() - start_s, time.process_time() - cpu_s)
    if Pages.seen != pages:
        sys.exit(f"Scrapy saw {Pages.seen} pages of {pages}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

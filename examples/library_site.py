"""A small site on this machine that changes all the time: the pages of a town library, for the tutorials.

    python examples/library_site.py [--port 8100] [--speed 1]

Some pages change every few seconds, some every few minutes, most never. The site has a sitemap, a feed and
robots.txt, and answers conditional requests. ``GET /log`` returns how often each page has changed, so that
you can compare it with what afresh found. With ``--speed 10`` everything changes ten times as often. It
serves only this machine, and ends at Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from hashlib import blake2b
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGES = {
    "": (
        "The town library",
        "Welcome. We lend books, films and games, and have rooms to meet.",
        15,
    ),
    "events": ("Events", "Readings, courses and evenings for children take place in the hall.", 20),
    "cafe": ("Menu of the café", "The café on the ground floor serves soup, cake and coffee.", 40),
    "new-books": ("New books", "These books arrived lately. Ask at the desk to reserve one.", 60),
    "rooms": ("Free rooms", "Rooms for groups of up to eight people can be reserved for two hours.", 90),
    "jobs": ("Jobs", "We look for people who help at the desk and in the archive.", 300),
    "hours": ("Opening hours", "The library is open from Tuesday to Saturday, from ten to seven.", 900),
    "fees": ("Fees", "A card costs twelve a year. A book that is late costs twenty cents a day.", 0),
    "borrow": ("Borrow a book", "Show your card at the desk. You may keep a book for four weeks.", 0),
    "extend": ("Extend a loan", "Log in and choose Extend. A loan can be extended twice.", 0),
    "return": ("Return a book", "Put books into the box beside the door, by day or by night.", 0),
    "printing": ("Print and copy", "Printers are on the second floor. A page costs ten cents.", 0),
    "wifi": ("Wireless network", "Choose the network Library. The password is on your card.", 0),
    "archive": ("The archive", "Newspapers since 1871 can be read in the archive after notice.", 0),
    "contact": ("Contact", "Write to the desk, or call us during the opening hours.", 0),
}
"""Path: title, text, and the mean number of seconds between two changes (0: it never changes)."""


class Page:
    """A page that changes at random moments, at a constant rate."""

    def __init__(self, path: str, speed: float) -> None:
        self.title, self.text, mean_s = PAGES[path]
        self._mean_s = mean_s / speed
        self._random = random.Random(path)
        self.changes = 0
        self.changed_s = time.time()
        self._next_s = self._draw()

    def _draw(self) -> float:
        return self.changed_s + self._random.expovariate(1 / self._mean_s) if self._mean_s else float("inf")

    def content(self) -> bytes:
        """The page as it is now."""
        while self._next_s <= time.time():
            self.changes += 1
            self.changed_s = self._next_s
            self._next_s = self._draw()
        links = (f'<a href="/{path}">{escape(title)}</a>' for path, (title, *_) in PAGES.items())
        lines = [
            f"<!doctype html><html lang=en><title>{self.title}</title>",
            f"<nav>{' '.join(links)}</nav>",
            f"<article><h1>{self.title}</h1>",
            f"<p>{self.text}</p>",
            *self._notice(),
            "</article></html>\n",
        ]
        return "\n".join(lines).encode()

    def _notice(self) -> list[str]:
        shelf = self.changes * 37 % 90 + 10
        return [f"<p>Notice number {self.changes}: see shelf {shelf}.</p>"] if self.changes else []


class Site(ThreadingHTTPServer):
    """The pages, and the address at which they are served."""

    def __init__(self, port: int, speed: float = 1.0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.pages = {path: Page(path, speed) for path in PAGES}
        self.address = f"http://127.0.0.1:{self.server_address[1]}/"


class Handler(BaseHTTPRequestHandler):
    """Answers GET for pages, sitemap, feed, robots.txt and the log."""

    protocol_version = "HTTP/1.1"
    server: Site

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].removeprefix("/")
        if path in PAGES:
            return self._send(self.server.pages[path].content(), "text/html; charset=utf-8")
        lists = {"sitemap.xml": self._sitemap, "feed.xml": self._feed}
        if path in lists:
            return self._send(lists[path]().encode(), "application/xml")
        if path == "robots.txt":
            rules = f"User-agent: *\nAllow: /\nSitemap: {self.server.address}sitemap.xml\n"
            return self._send(rules.encode(), "text/plain")
        if path == "log":
            counts = {f"/{one}": self._changes(one) for one in PAGES}
            return self._send(json.dumps(counts, indent=1).encode() + b"\n", "application/json")
        return self._send(b"There is no such page.\n", "text/plain", 404)

    def _changes(self, path: str) -> int:
        self.server.pages[path].content()
        return self.server.pages[path].changes

    def _sitemap(self) -> str:
        urls = "".join(f"<url><loc>{self.server.address}{path}</loc></url>" for path in PAGES)
        return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'

    def _feed(self) -> str:
        news = "".join(
            f"<item><title>{escape(PAGES[path][0])}</title><link>{self.server.address}{path}</link></item>"
            for path in ("events", "new-books")
        )
        return f'<rss version="2.0"><channel><title>Library</title>{news}</channel></rss>'

    def _send(self, body: bytes, kind: str, status: int = 200) -> None:
        tag = f'"{blake2b(body, digest_size=8).hexdigest()}"'
        known = self.headers.get("If-None-Match") == tag
        self.send_response(304 if known else status)
        self.send_header("ETag", tag)
        if not known:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if not known:
            self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        """Print nothing for each request."""


def main() -> None:
    parser = argparse.ArgumentParser(description="A small site that changes all the time.")
    parser.add_argument("--port", type=int, default=8100)
    parser.add_argument("--speed", type=float, default=1.0)
    given = parser.parse_args()
    try:
        site = Site(given.port, given.speed)
    except OSError as error:
        sys.exit(f"port {given.port}: {error.strerror}. Does the library run in another terminal already?")
    with site:
        print(f"The library is at {site.address} until Ctrl-C.", flush=True)
        try:
            site.serve_forever()
        except KeyboardInterrupt:
            print("Closed.")


if __name__ == "__main__":
    main()

"""Two small shops on this machine whose prices change, for the tutorial of a price tracker.

    python examples/two_shops.py [--ports 8201 8202] [--speed 1]

Shop A answers in JSON: ``GET /api/products/1``. Shop B has pages for people: ``GET /products/1``, with the
price in an element of the class ``price`` and a clock beside it, which changes all the time and does not
matter. Both sell the same ten films. Some prices change every few seconds, some never. ``GET /log`` returns
how often each price has changed. With ``--speed 10`` they change ten times as often. The shops serve only
this machine, and end at Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FILMS = {
    "1": ("Metropolis", 12.0, 20),
    "2": ("Sunrise", 20.0, 30),
    "3": ("The General", 9.0, 60),
    "4": ("Nosferatu", 11.0, 90),
    "5": ("Safety Last!", 8.0, 120),
    "6": ("The Kid", 10.0, 240),
    "7": ("Faust", 14.0, 600),
    "8": ("M", 13.0, 0),
    "9": ("Greed", 25.0, 0),
    "10": ("Wings", 15.0, 0),
}
"""Number: title, usual price, and the mean number of seconds between two changes (0: it never changes)."""


class Price:
    """The price of a film in one shop, which changes at random moments."""

    def __init__(self, number: str, shop: str, speed: float) -> None:
        self.title, self._usual, mean_s = FILMS[number]
        self._mean_s = mean_s / speed
        self._random = random.Random(f"{shop} {number}")
        self.changes = 0
        self._price, self._next_s = self._usual, self._draw(time.time())

    def _draw(self, after_s: float) -> float:
        return after_s + self._random.expovariate(1 / self._mean_s) if self._mean_s else float("inf")

    def now(self) -> float:
        """The price now: up to a fifth above or below the usual price."""
        while self._next_s <= time.time():
            before = self._price
            while self._price == before:
                self._price = round(self._usual * self._random.uniform(0.8, 1.2), 1)
            self.changes += 1
            self._next_s = self._draw(self._next_s)
        return self._price


class Shop(ThreadingHTTPServer):
    """A shop with its prices, and the address at which it is served."""

    def __init__(self, name: str, port: int, speed: float = 1.0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.name = name
        self.prices = {number: Price(number, name, speed) for number in FILMS}
        self.address = f"http://127.0.0.1:{self.server_address[1]}/"


class Handler(BaseHTTPRequestHandler):
    """Answers GET for products, the log and robots.txt."""

    protocol_version = "HTTP/1.1"
    server: Shop

    def do_GET(self) -> None:
        *folders, number = self.path.removeprefix("/").split("/")
        wanted = ["api", "products"] if self.server.name == "A" else ["products"]
        if folders == wanted and number in FILMS:
            return self._product(number)
        if self.path == "/log":
            for price in self.server.prices.values():
                price.now()
            counts = {price.title: price.changes for price in self.server.prices.values()}
            return self._send(json.dumps(counts, indent=1) + "\n", "application/json")
        if self.path == "/robots.txt":
            return self._send("User-agent: *\nAllow: /\n", "text/plain")
        return self._send("There is no such product.\n", "text/plain", 404)

    def _product(self, number: str) -> None:
        price = self.server.prices[number]
        if self.server.name == "A":
            product = {"title": price.title, "price": price.now(), "served_s": time.time()}
            return self._send(json.dumps({"product": product}), "application/json")
        page = f"<h1>{price.title}</h1><p class=price>{price.now():.2f}</p>"
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        return self._send(
            f"<!doctype html><title>{price.title}</title>{page}<p>It is {now}.</p>", "text/html"
        )

    def _send(self, text: str, kind: str, status: int = 200) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        """Print nothing for each request."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Two small shops whose prices change.")
    parser.add_argument("--ports", type=int, nargs=2, default=[8201, 8202])
    parser.add_argument("--speed", type=float, default=1.0)
    given = parser.parse_args()
    (one, other), speed = given.ports, given.speed
    try:
        first, second = Shop("A", one, speed), Shop("B", other, speed)
    except OSError as error:
        sys.exit(f"port {one} or {other}: {error.strerror}. Do the shops run in another terminal already?")
    with first, second:
        print(f"Shop A is at {first.address} and shop B at {second.address} until Ctrl-C.", flush=True)
        beside = threading.Thread(target=second.serve_forever, daemon=True)
        beside.start()
        try:
            first.serve_forever()
        except KeyboardInterrupt:
            print("Closed.")
        second.shutdown()


if __name__ == "__main__":
    main()

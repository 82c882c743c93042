"""The two copies that afresh is compared with: small clients, each with a rule for what to request next.

Both make as many requests as the copy of afresh, one after another on one connection, and read no feed. So
the comparison is fair on a busy machine too. ``InTurn`` is uniform polling. ``HalvedOrGrown`` is the rule of
many crawlers: the interval of a page is halved after a change and grows by half otherwise. Times are in
site-days.
"""

from __future__ import annotations

import heapq
import http.client
import threading
from collections.abc import Callable, Sequence
from typing import Protocol, Self

from afresh.values.errors import AfreshError

GROWTH = 1.5
LEAST_D, MOST_D = 1.0, 365.0
_PAUSE_S = 0.02
_TIMEOUT_S = 30.0


class Rule(Protocol):
    """Decides which page a client requests next, and learns from the answers."""

    def next(self) -> int:
        """Return the number of the page to request now."""

    def learn(self, page: int, now_d: float, *, changed: bool) -> None:
        """Take note of the answer for ``page`` at ``now_d``: has the page changed since the last one?"""


class InTurn:
    """Requests all pages in turn, in a fixed order.

    >>> rule = InTurn([2, 0, 1])
    >>> [rule.next() for _ in range(4)]
    [2, 0, 1, 2]
    """

    def __init__(self, order: Sequence[int]) -> None:
        self._order, self._at = list(order), 0

    def next(self) -> int:
        page = self._order[self._at]
        self._at = (self._at + 1) % len(self._order)
        return page

    def learn(self, page: int, now_d: float, *, changed: bool) -> None:
        """Uniform polling does not learn."""


class HalvedOrGrown:
    """Requests the page that is due first, and halves or grows its interval. ``first_d`` is the interval of
    every page at the beginning.

    >>> rule = HalvedOrGrown([0, 1], first_d=30.0)
    >>> rule.learn(rule.next(), 0.0, changed=True)       # page 0 after 15 days
    >>> rule.learn(rule.next(), 1.0, changed=False)      # page 1 after 45 days
    >>> rule.next()
    0
    """

    def __init__(self, order: Sequence[int], *, first_d: float) -> None:
        self._due = [(0.0, place, page) for place, page in enumerate(order)]
        self.interval_d = dict.fromkeys(order, first_d)
        self._learned = len(self._due)  # makes pages that are due at the same time come in turn

    def next(self) -> int:
        return heapq.heappop(self._due)[2]

    def learn(self, page: int, now_d: float, *, changed: bool) -> None:
        interval_d = self.interval_d[page] * (0.5 if changed else GROWTH)
        self.interval_d[page] = min(max(interval_d, LEAST_D), MOST_D)
        self._learned += 1
        heapq.heappush(self._due, (now_d + self.interval_d[page], self._learned, page))


class RivalClient:
    """Fetches every page once, waits for ``begin``, and then polls by its rule until the ``with`` block ends.
    All of this happens in a thread of its own."""

    def __init__(
        self,
        name: str,
        port: int,
        order: Sequence[int],
        rule: Rule,
        now_d: Callable[[], float],
    ) -> None:
        """``name`` is sent as the User-Agent. ``order`` has every page of the site once."""
        self._name, self._port, self._order, self._rule, self._now_d = name, port, order, rule, now_d
        self._etags: dict[int, str] = {}
        self._allowed: Callable[[], int] = int
        self._begun, self._stopped = threading.Event(), threading.Event()
        self._failure = ""
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._begun.set()
        self._thread.join()

    def begin(self, allowed: Callable[[], int]) -> None:
        """Start to poll. ``allowed`` returns how many requests may have been made since this call."""
        self._allowed = allowed
        self._begun.set()

    def check(self) -> None:
        """Raise AfreshError if the client has ended by itself."""
        if self._failure:
            raise AfreshError(f"the copy kept by {self._name} ended too early: {self._failure}")

    def _work(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT_S)
        try:
            for page in self._order:
                self._request(connection, page)
                if self._stopped.is_set():
                    return
            self._begun.wait()
            self._poll(connection)
        except (OSError, http.client.HTTPException) as error:
            self._failure = str(error) or type(error).__name__
        finally:
            connection.close()

    def _poll(self, connection: http.client.HTTPConnection) -> None:
        made = 0
        while not self._stopped.is_set():
            if made >= self._allowed():
                self._stopped.wait(_PAUSE_S)
                continue
            page = self._rule.next()
            changed = self._request(connection, page)
            self._rule.learn(page, self._now_d(), changed=changed)
            made += 1

    def _request(self, connection: http.client.HTTPConnection, page: int) -> bool:
        """Request a page, and return whether it has changed since it was last requested."""
        headers = {"User-Agent": self._name}
        if page in self._etags:
            headers["If-None-Match"] = self._etags[page]
        connection.request("GET", f"/page/{page}", headers=headers)
        response = connection.getresponse()
        response.read()
        if response.status == http.client.NOT_MODIFIED:
            return False
        self._etags[page] = response.headers.get("ETag", "")
        return True

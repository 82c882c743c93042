"""A site of Debian's python3-doc and postgresql-doc behind nginx, copied by its links, and by its sitemap.

Asked: are all pages copied from the start pages, is any page outside the scope asked for, how many requests
does a page take, and how fresh are the copies while pages change, beside the same site with a sitemap.
``make bench-docs`` gets the packages and nginx, without installing them. The quick version uses a small site
of our own behind Python's server.
"""

from __future__ import annotations

import random
import re
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

from afresh import Engine, open_engine
from afresh.engine.reporting.item_selection import EVERYTHING, ItemSelection, selected_items
from bench.docs_site import DOCS, STARTS, nginx_site
from bench.rows import Row

_SETTINGS = """
[budget]
requests = "{budget}/s"
[plan]
audit_share = 0
[[source]]
name = "web"
delay = 0
concurrency = 8
allow_private = true
min_interval = 0
"""


def rows(*, quick: bool) -> list[Row]:
    """Copy the site by its links and measure; then compare the freshness with that by a sitemap."""
    if not quick and not DOCS.is_dir():
        raise SystemExit(f"bench follow: {DOCS} is not there: make bench-docs gets it")
    runs, seconds, budget = (1, 4.0, 100) if quick else (3, 60.0, 100)
    found: list[Row] = []
    scores: dict[str, list[float]] = {"links": [], "sitemap": []}
    for run in range(runs):
        # The load of a machine drifts, so that neither way is always the first one.
        for way in sorted(scores, reverse=run % 2 == 1):
            with tempfile.TemporaryDirectory() as folder, _site(Path(folder) / "www", quick=quick) as url:
                work = _Copied(Path(folder), url, way, budget, _STARTS_QUICK if quick else STARTS)
                if way == "links" and run == 0:
                    found += work.completeness()
                scores[way].append(work.freshness(seconds, run))
    mean = {way: statistics.fmean(values) for way, values in scores.items()}
    found.append(Row("freshness with a sitemap", 100 * mean["sitemap"], "%"))
    found.append(Row("freshness by links", 100 * mean["links"], "%"))
    loss = 100 * (mean["sitemap"] - mean["links"])
    found.append(Row("freshness lost", loss, "points", at_most=None if quick else 2.0))
    return found


_STARTS_QUICK = ("/docs/",)


class _Copied:
    """A copy of the site at ``url``, made by its links or by its sitemap."""

    def __init__(self, folder: Path, url: str, way: str, budget: float, starts: tuple[str, ...]) -> None:
        self._folder, self._url, self._starts = folder, url, starts
        (folder / "afresh.toml").write_text(_SETTINGS.format(budget=budget))
        self._pages = {
            f"{url}/{path.relative_to(folder / 'www').as_posix()}": path
            for start in starts
            # In the same order for both ways, so that the same pages change at the same times.
            for path in sorted((folder / "www" / start.strip("/").partition("/index")[0]).rglob("*.html"))
        }
        with open_engine(folder) as engine:
            if way == "sitemap":
                names = "".join(f"<url><loc>{page}</loc></url>" for page in self._pages)
                (folder / "www" / "sitemap.xml").write_text(f"<urlset>{names}</urlset>")
                engine.add_listings(sitemaps=[f"{url}/sitemap.xml"])
            else:
                engine.add_listings(follow=[url + start for start in starts])
            engine.run(once=True)

    def completeness(self) -> list[Row]:
        with open_engine(self._folder) as engine:
            items = list(selected_items(engine.store, EVERYTHING))
            requests = engine.store.ledger.total(0.0, np.inf).requests
        copied = {item.key for item in items if item.version}
        outside = [item for item in items if not any(_below(item.key, self._url + s) for s in self._starts)]
        index = {page.removesuffix("index.html") for page in copied}
        missing = [page for page in self._pages if page.removesuffix("index.html") not in index]
        orphans = [page for page in missing if not self._is_linked(self._pages[page])]
        missing = [page for page in missing if page not in orphans]
        for page in missing[:10]:
            print("not copied:", page)
        return [
            Row("pages of the site", len(self._pages), "pages"),
            Row("pages copied by links", len(copied), "pages"),
            Row("pages to which no other page links", len(orphans), "pages"),
            Row("pages not copied", len(missing), "pages", at_most=0.0),
            Row("items outside the scope", len(outside), "items", at_most=0.0),
            Row("requests per page found", requests / max(len(copied), 1), "requests"),
        ]

    def _is_linked(self, page: Path) -> bool:
        """Return whether any other page names this one, found without the parser of afresh."""
        link = re.compile(rb'href="[^"]*' + re.escape(page.name.encode()))
        return any(path != page and link.search(path.read_bytes()) for path in self._pages.values())

    def freshness(self, seconds: float, seed: int) -> float:
        """Let pages change while the engine polls; return the mean share of copies that were up to date."""
        rng, paths = random.Random(seed), list(self._pages.items())
        weights = [rng.lognormvariate(0.0, 1.5) for _ in paths]
        changed_s: dict[str, float] = {}
        seen: list[float] = []
        with open_engine(self._folder) as engine:
            engine.start()
            end_s = time.time() + seconds
            while time.time() < end_s:
                for url, path in rng.choices(paths, weights, k=2):
                    with path.open("ab") as file:
                        file.write(b"<!-- changed -->")
                    changed_s[url.removesuffix("index.html")] = time.time()
                if time.time() > end_s - seconds / 2 and rng.random() < 0.05:
                    seen.append(_share_fresh(engine, changed_s))
                time.sleep(0.05)
            seen.append(_share_fresh(engine, changed_s))
            engine.stop()
        return statistics.fmean(seen)


def _share_fresh(engine: Engine, changed_s: dict[str, float]) -> float:
    items = [one for one in selected_items(engine.store, ItemSelection(status="active")) if one.version]
    fresh = [
        (item.polled_s or 0.0) >= changed_s.get(item.key.removesuffix("index.html"), 0.0) for item in items
    ]
    return statistics.fmean(fresh)


def _below(address: str, start: str) -> bool:
    return address.startswith(start.rpartition("/")[0] + "/")


@contextmanager
def _site(folder: Path, *, quick: bool) -> Iterator[str]:
    """Serve a copy of the site from ``folder``; yield its address."""
    if not quick:
        shutil.copytree(DOCS, folder)
        with nginx_site(folder) as url:
            yield url
        return
    (folder / "docs").mkdir(parents=True)
    for number in range(60):
        links = "".join(f'<a href="{other}.html#x">{other}</a>' for other in (2 * number + 1, 2 * number + 2))
        name = "index" if number == 0 else str(number)
        (folder / "docs" / f"{name}.html").write_text(f'{links if number < 29 else ""}<a href="/">out</a>')
    (folder / "docs" / "59.html").unlink()
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""

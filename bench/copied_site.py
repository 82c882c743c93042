"""A copy of a site that ``bench follow`` makes by links or by a sitemap: is it complete, how fresh is it."""

from __future__ import annotations

import random
import re
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from afresh import Engine, open_engine
from afresh.engine.reporting.item_selection import EVERYTHING, ItemSelection, selected_items
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
{more}
"""
_STEP_S, _SAMPLE_S = 0.02, 1.0
_SPREAD = 1.5  # of the logarithms of the rates: of two pages, one often changes ten times as often


@dataclass(frozen=True, slots=True)
class SiteFiles:
    """A site that is served from the folder ``root`` at ``url``. Its pages are the files below ``starts``.
    ``suffix`` is added to the name of a page for the file that is written when the page changes."""

    root: Path
    url: str
    starts: tuple[str, ...]
    suffix: str = ""

    def pages(self) -> dict[str, Path]:
        """Return the file of each page by its address, always in the same order."""
        folders = [self.root / start.strip("/").partition("/index")[0] for start in self.starts]
        files = [path for folder in folders for path in sorted(folder.rglob("*.html"))]
        return {f"{self.url}/{path.relative_to(self.root).as_posix()}": path for path in files}


@dataclass(frozen=True, slots=True)
class Trial:
    """The mean share of copies that were up to date, and the requests per second that were sent."""

    freshness: float
    requests_per_s: float


class CopiedSite:
    """A copy of the site ``files`` in the project ``folder``, made by links or by a sitemap (``way``)."""

    def __init__(self, folder: Path, files: SiteFiles, way: str, budget: float, more: str = "") -> None:
        self._folder, self._files, self._pages = folder, files, files.pages()
        (folder / "afresh.toml").write_text(_SETTINGS.format(budget=budget, more=more))
        with open_engine(folder) as engine:
            if way == "sitemap":
                names = "".join(f"<url><loc>{page}</loc></url>" for page in self._pages)
                (files.root / "sitemap.xml").write_text(f"<urlset>{names}</urlset>")
                engine.add_listings(sitemaps=[f"{files.url}/sitemap.xml"])
            else:
                engine.add_listings(follow=[files.url + start for start in files.starts])
            engine.run(once=True)

    def completeness(self, name: str = "") -> list[Row]:
        """Return rows about what was copied; ``name`` stands before their titles."""
        with open_engine(self._folder) as engine:
            items = list(selected_items(engine.store, EVERYTHING))
            requests = engine.store.ledger.total(0.0, np.inf).requests
        copied = {item.key for item in items if item.version}
        starts = [self._files.url + start for start in self._files.starts]
        outside = [item for item in items if not any(_is_below(item.key, start) for start in starts)]
        index = {_plain(page) for page in copied}
        missing = [page for page in self._pages if _plain(page) not in index]
        orphans = [page for page in missing if not self._is_linked(self._pages[page])]
        missing = [page for page in missing if page not in orphans]
        for page in missing[:10]:
            print("not copied:", page)
        return [
            Row(f"{name}pages of the site", len(self._pages), "pages"),
            Row(f"{name}pages copied by links", len(copied), "pages"),
            Row(f"{name}pages to which no other page links", len(orphans), "pages"),
            Row(f"{name}pages not copied", len(missing), "pages", at_most=0.0),
            Row(f"{name}items outside the scope", len(outside), "items", at_most=0.0),
            Row(f"{name}requests per page found", requests / max(len(copied), 1), "requests"),
        ]

    def _is_linked(self, page: Path) -> bool:
        """Return whether any other page names this one, found without the parser of afresh."""
        link = re.compile(rb'href="[^"]*' + re.escape(page.name.encode()))
        files = (self._changing(path) for path in self._pages.values() if path != page)
        return any(link.search(path.read_bytes()) for path in files)

    def _changing(self, page: Path) -> Path:
        return page.with_name(page.name + self._files.suffix)

    def measure(self, seconds: float, seed: int, changes_per_s: float) -> Trial:
        """Let pages change while the engine polls; measure in the second half. What changes when is drawn
        beforehand, so that it is the same on a busy machine and for both ways of finding pages."""
        rng, paths = random.Random(seed), list(self._pages.items())
        weights = [rng.lognormvariate(0.0, _SPREAD) for _ in paths]
        changes = iter(rng.choices(paths, weights, k=int(seconds * changes_per_s)))
        changed_s: dict[str, float] = {}
        seen: list[float] = []
        with open_engine(self._folder) as engine:
            before = engine.store.ledger.total(0.0, np.inf).requests
            engine.start()
            begin_s, written = time.time(), 0
            sample_s = begin_s + seconds / 2
            while (now_s := time.time()) < begin_s + seconds:
                while written < (now_s - begin_s) * changes_per_s and (one := next(changes, None)):
                    written += 1
                    with self._changing(one[1]).open("ab") as file:
                        file.write(b"<p>changed")
                    changed_s[_plain(one[0])] = time.time()
                if now_s >= sample_s:
                    sample_s += _SAMPLE_S
                    seen.append(_share_fresh(engine, changed_s))
                time.sleep(_STEP_S)
            engine.stop()
            requests = engine.store.ledger.total(0.0, np.inf).requests - before
        return Trial(statistics.fmean(seen), requests / (time.time() - begin_s))


def _share_fresh(engine: Engine, changed_s: Mapping[str, float]) -> float:
    items = [one for one in selected_items(engine.store, ItemSelection(status="active")) if one.version]
    return statistics.fmean((item.polled_s or 0.0) >= changed_s.get(_plain(item.key), 0.0) for item in items)


def _plain(address: str) -> str:
    return address.removesuffix("index.html")


def _is_below(address: str, start: str) -> bool:
    return address.startswith(start.rpartition("/")[0] + "/")

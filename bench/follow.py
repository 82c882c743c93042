"""A site of Debian's python3-doc and postgresql-doc behind nginx, copied by its links, and by its sitemap.

Asked: are all pages copied from the start pages, is any page outside the scope asked for, how many requests
does a page take, and how fresh are the copies while pages change, beside the same site with a sitemap. The
same is asked of a version of 300 of its pages that scripts make in the browser, with ``render = "auto"``.
``make bench-docs`` gets the packages and nginx, without installing them. The quick version uses a small site
of our own behind Python's server. ``--case plain`` and ``--case rendered`` measure one of the two.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench.client_side_site import PART, make_client_side
from bench.copied_site import CopiedSite, SiteFiles, Trial
from bench.docs_site import DOCS, STARTS, nginx_site
from bench.rows import Row

_WAYS = ("links", "sitemap")


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a site is measured: ``runs`` times for ``seconds``, in which pages change and requests are sent."""

    runs: int
    seconds: float
    changes_per_s: float
    requests_per_s: float
    pages: int = 0
    settings: str = ""


_PLAIN, _PLAIN_QUICK = _Plan(3, 60.0, 40.0, 100.0), _Plan(1, 2.0, 40.0, 100.0)
# A rendering takes half a second of waiting and three requests: the page, its script and its text.
_AUTO = 'render = "auto"'
_RENDERED = _Plan(3, 150.0, 0.8, 6.0, pages=300, settings=_AUTO)
_RENDERED_QUICK = _Plan(1, 5.0, 0.8, 9.0, pages=5, settings=_AUTO)


CASES = ("plain", "rendered")


def rows(*, quick: bool, cases: Sequence[str] = CASES) -> list[Row]:
    """Copy the sites by their links and measure; then compare the freshness with that by a sitemap."""
    if not quick and not DOCS.is_dir():
        raise SystemExit(f"bench follow: {DOCS} is not there: make bench-docs gets it")
    found: list[Row] = []
    if "plain".startswith(tuple(cases)):
        found += _rows_of("", _PLAIN_QUICK if quick else _PLAIN, quick=quick)
    if "rendered".startswith(tuple(cases)):
        found += _rows_of("rendered: ", _RENDERED_QUICK if quick else _RENDERED, quick=quick)
    return found


def _rows_of(name: str, plan: _Plan, *, quick: bool) -> list[Row]:
    found: list[Row] = []
    trials: dict[str, list[Trial]] = {way: [] for way in _WAYS}
    for run in range(plan.runs):
        # The load of a machine drifts, so that neither way is always the first one.
        for way in _WAYS if run % 2 == 0 else reversed(_WAYS):
            with tempfile.TemporaryDirectory() as folder, _site(Path(folder), plan, quick=quick) as files:
                work = CopiedSite(Path(folder), files, way, plan.requests_per_s, plan.settings)
                if way == "links" and run == 0:
                    found += work.completeness(name)
                trials[way].append(work.measure(plan.seconds, run, plan.changes_per_s))
    return found + _compared(name, plan, trials, quick=quick)


def _compared(name: str, plan: _Plan, trials: dict[str, list[Trial]], *, quick: bool) -> list[Row]:
    found = []
    for way, title in (("sitemap", "with a sitemap"), ("links", "by links")):
        # Where fewer requests were sent than the budget allows, the machine was the limit.
        sent = statistics.fmean(trial.requests_per_s for trial in trials[way])
        each = ", ".join(f"{100 * trial.freshness:.1f}" for trial in trials[way])
        print(f"{name}{title}: {each} % fresh; {sent:.1f} of {plan.requests_per_s:g} requests/s sent")
        found.append(Row(f"{name}requests {title}, of the budget", 100 * sent / plan.requests_per_s, "%"))
    mean = {way: statistics.fmean(one.freshness for one in trials[way]) for way in _WAYS}
    found.append(Row(f"{name}freshness with a sitemap", 100 * mean["sitemap"], "%"))
    found.append(Row(f"{name}freshness by links", 100 * mean["links"], "%"))
    loss = 100 * (mean["sitemap"] - mean["links"])
    found.append(Row(f"{name}freshness lost", loss, "points", at_most=None if quick else 2.0))
    return found


@contextmanager
def _site(folder: Path, plan: _Plan, *, quick: bool) -> Iterator[SiteFiles]:
    """Serve a copy of the site from ``folder``."""
    root, plain = folder / "www", folder / "plain"
    if quick:
        _write_small_site(plain / "docs")
    is_client_side = plan.pages > 0
    start, pages = ("/docs/", plain) if quick else ("/postgresql/", DOCS)
    starts = (start,) if quick or is_client_side else STARTS
    if is_client_side:
        make_client_side(pages, root, start.strip("/") + "/index.html", plan.pages)
    else:
        shutil.copytree(pages, root)
    with (_small_server if quick else nginx_site)(root) as url:
        yield SiteFiles(root, url, starts, PART if is_client_side else "")


def _write_small_site(folder: Path) -> None:
    folder.mkdir(parents=True)
    for number in range(59):
        others = (2 * number + 1, 2 * number + 2) if number < 29 else ()
        links = "".join(f'<a href="{other}.html#x">{other}</a>' for other in others)
        name = "index" if number == 0 else str(number)
        text = f"<p>What page {number} says is put together from these words.</p>"
        (folder / f"{name}.html").write_text(f'{text}{links}<a href="/">out</a>')


@contextmanager
def _small_server(root: Path) -> Iterator[str]:
    handler = partial(_Quiet, directory=str(root))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""

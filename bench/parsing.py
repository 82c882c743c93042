"""What parsing costs: families of many keys, the worst small inputs, and a parser process."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b

from tests.policy.news_addresses import news
from tests.sources.parsing.attacks import PARSERS, found_in_the_wild

from afresh.policy.families import families_of
from afresh.sources.change_detection import Recipe, normalise
from afresh.sources.parsing.parse_budget import SMALL_BYTES
from afresh.sources.parsing.parser_pool import ParserPool
from bench.rows import Row
from bench.timing import seconds

PAGE = b"<!doctype html><title>News</title><main><h1>News</h1>%s</main><footer>12:31</footer>"
PARAGRAPH = b"<p>The harbour was <a href='/x'>closed</a> for the storm of the year, said the council.</p>\n"


def rows(*, quick: bool) -> list[Row]:
    """Return seconds of processor time; with ``quick`` for few keys and small pages."""
    return [*families_cost(5_000 if quick else 200_000), *worst_small(quick), *process_cost(quick)]


def families_cost(count: int) -> Iterator[Row]:
    names = news(count)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work_s = _processor_s(lambda: families_of(names))
    memory_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / 1e3
    reading_s = _processor_s(lambda: [blake2b(name.encode()).digest() for name in names])
    yield Row(
        f"families of {count:,} addresses, to reading them", work_s, "s", work_s / reading_s, at_most=30.0
    )
    yield Row(f"memory of families of {count:,} addresses", memory_mb, "MB", at_most=100.0)


def worst_small(quick: bool) -> Iterator[Row]:
    """Measure the worst of the known attacks, for sizes around that at which inputs leave the process."""
    sizes = (
        (SMALL_BYTES // 4,) if quick else (SMALL_BYTES // 2, SMALL_BYTES, 2 * SMALL_BYTES, 4 * SMALL_BYTES)
    )
    for size in sizes:
        worst_s, name = max(
            (_processor_s(partial(parser, data[:size])), name)
            for name, parser in PARSERS.items()
            for data in found_in_the_wild(size)
        )
        yield Row(f"worst known input of {size:,} bytes ({name})", worst_s, "s")


def process_cost(quick: bool) -> Iterator[Row]:
    """Measure the selection of a part of a page by a parser process; the ratio is to the same work here."""
    recipe = Recipe(selectors=("main",), text_only=True)
    with ParserPool(1).joined() as pool:
        for size in (SMALL_BYTES,) if quick else (4_096, SMALL_BYTES, 65_536, 1_000_000):
            page = PAGE % (PARAGRAPH * (size // len(PARAGRAPH)))
            here_s, there_s = seconds(
                partial(normalise, page, "text/html", recipe),
                partial(pool.parse_here, normalise, page, "text/html", recipe, small=0),
                repeats=3 if quick else 50,
            )
            yield Row(f"page of {len(page):,} bytes by a parser process", there_s, "s", there_s / here_s)


def _processor_s(work: Callable[[], object]) -> float:
    start_s = time.process_time()
    work()
    return time.process_time() - start_s

"""Pages per second of the engine, commits included, against Scrapy, which stores nothing, on one site."""

from __future__ import annotations

from bench.polling import site
from bench.process import run_python
from bench.rows import Row


def rows(*, quick: bool) -> list[Row]:
    """Measure the engine between two runs of Scrapy, the yardstick, since the speed of machines varies."""
    pages = 300 if quick else 8_000
    with site() as port:
        before = _took("bench.scrapy_pages", port, pages)[0]
        rounds = _took("bench.engine_pages", port, pages)
        after = _took("bench.scrapy_pages", port, pages)[0]
    wall_s, cpu_s = (min(a, b) for a, b in zip(before, after, strict=True))
    found = [
        Row("Scrapy", 1.0 / wall_s, "pages/s"),
        Row("Scrapy, processor time", 1e6 * cpu_s, "µs/page"),
    ]
    wanted = None if quick else 3.0
    for name, took in zip(("first copies", "polled again", "as ranked"), rounds, strict=True):
        found.append(
            Row(f"engine, {name}", 1.0 / took[0], "pages/s", ratio=wall_s / took[0], at_least=wanted)
        )
        found.append(Row(f"engine, {name}, processor time", 1e6 * took[1], "µs/page", ratio=took[1] / cpu_s))
    return found


def _took(module: str, port: int, pages: int) -> list[tuple[float, float]]:
    """Return wall-clock and processor seconds per page, one pair for each line that was printed."""
    lines = run_python(module, str(port), str(pages)).output.splitlines()
    found = [tuple(map(float, line.split())) for line in lines]
    return [(wall_s / polls, cpu_s / polls) for polls, wall_s, cpu_s in found]

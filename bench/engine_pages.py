"""The engine keeping pages of a loopback site: ``python -m bench.engine_pages PORT PAGES``.

Prints polls, wall and processor seconds of fetching every page, of polling every page again because somebody
asks for it, and of polling for a while what the policy chooses, all committed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable

from afresh.engine.app import make_engine
from afresh.engine.settings.parsing import parse_settings
from bench.polling import AT_ONCE

RANKED_PER_S = 1600.0  # about its speed, so that all rounds take equally long
SETTINGS = f"""
[budget]
requests = "1000000/s"
[plan]
audit_share = 0
[[source]]
name = "web"
allow_private = true
min_interval = 0
delay = 0
concurrency = {AT_ONCE}
"""


def main(port: int, pages: int) -> None:
    """Fetch all pages, poll all again, and then poll those with the highest poll value."""
    with tempfile.TemporaryDirectory() as folder, make_engine(parse_settings(SETTINGS), folder) as engine:
        keys = [f"http://127.0.0.1:{port}/{number}" for number in range(pages)]
        engine.add(keys)
        for _ in range(2):
            engine.poll_now(keys)
            polls = timed(lambda: engine.run(once=True).polls)
            if polls != pages:
                sys.exit(f"the engine made {polls} polls of {pages}")
        timed(lambda: engine.run(for_s=pages / RANKED_PER_S).polls)


def timed(work: Callable[[], int]) -> int:
    """Print the time that these polls took."""
    start_s, cpu_s = time.perf_counter(), time.process_time()
    polls = work()
    print(polls, time.perf_counter() - start_s, time.process_time() - cpu_s)
    return polls


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

"""The engine keeping pages of a loopback site: ``python -m bench.engine_pages PORT PAGES``.

Prints wall and processor seconds of fetching every page, and of polling every page again, all committed.
"""

from __future__ import annotations

import sys
import tempfile
import time

from afresh.engine.app import make_engine
from afresh.engine.settings import read
from bench.polling import AT_ONCE

SETTINGS = f"""
[budget]
requests = "1000000/s"
[plan]
audit_share = 0
[[source]]
name = "web"
allow_private = true
delay = 0
concurrency = {AT_ONCE}
"""


def main(port: int, pages: int) -> None:
    """Fetch all pages, then poll all again."""
    with tempfile.TemporaryDirectory() as folder, make_engine(read(SETTINGS), folder) as engine:
        keys = [f"http://127.0.0.1:{port}/{number}" for number in range(pages)]
        engine.add(keys)
        for _ in range(2):
            engine.poll_now(keys)
            start_s, cpu_s = time.perf_counter(), time.process_time()
            polls = engine.run(once=True).polls
            print(time.perf_counter() - start_s, time.process_time() - cpu_s)
            if polls != pages:
                sys.exit(f"the engine made {polls} polls of {pages}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

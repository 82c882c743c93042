"""An open page of the dashboard without a browser: reads the live events, and the time course when it grows.

python -m bench.open_page HOST:PORT SECONDS
"""

from __future__ import annotations

import http.client
import json
import sys
import time


def watch(host: str, lasts_s: float) -> None:
    """Read the events for ``lasts_s`` seconds."""
    stream = http.client.HTTPConnection(host, timeout=60)
    stream.request("GET", "/live")
    answer, end_s, course_s = stream.getresponse(), time.monotonic() + lasts_s, None
    while time.monotonic() < end_s:
        line = answer.readline()
        if not line:
            return
        if line.startswith(b"data:") and (told := json.loads(line[5:]).get("course_s")) != course_s:
            course_s = told
            other = http.client.HTTPConnection(host, timeout=60)
            other.request("GET", "/api/v1/course")
            other.getresponse().read()
            other.close()
    stream.close()


if __name__ == "__main__":
    watch(sys.argv[1], float(sys.argv[2]))

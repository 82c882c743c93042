"""A run of an engine on the event loop of the test."""

from __future__ import annotations

import math

from afresh.engine.engine import Engine
from afresh.engine.runner.engine_run import Run
from afresh.engine.runner.run_context import StopSignal


async def run_through(
    engine: Engine, *, for_s: float = math.inf, once: bool = False, stop: StopSignal | None = None
) -> Run:
    """Run to the end, and return the run."""
    run = await engine.open_run(once=once, stop=stop)
    await run.run(for_s=for_s)
    return run

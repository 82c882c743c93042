"""``afresh run`` over the views of a database under load, recording when it refreshed which view."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from afresh.engine.app import make_engine
from afresh.engine.reporting.status import Status
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.settings.tables import Settings
from afresh.sources.context import SourceContext
from afresh.sources.registry import BUILT_IN, SourceKind
from afresh.sources.views.catalogue import Catalogue
from afresh.sources.views.settings import ViewSettings
from afresh.sources.views.source import ViewSource
from bench.view_world import Load, Refresh, Writer

Clock = Callable[[], float]
COUNTER_LAG_S = 0.1  # the writer lets its counters be reported at once


@dataclass(frozen=True, slots=True)
class Ran:
    """The refreshes and the writes with their times, and the status of the engine at the end."""

    refreshes: list[Refresh]
    committed: dict[str, list[float]]
    status: Status

    @property
    def spent_s(self) -> float:
        """The seconds that refreshes took, with their readings of the catalogue."""
        return 0.0 if self.status.run is None else self.status.run.seconds


class NotedViews(ViewSource):
    """The view source, which records each refresh in the time of ``now_s``."""

    def __init__(
        self, settings: ViewSettings, around: SourceContext, notes: list[Refresh], now_s: Clock
    ) -> None:
        super().__init__(settings, around)
        self._notes, self._now_s = notes, now_s

    async def _refresh(self, view: str, seen: Catalogue) -> None:
        begun_s = self._now_s()
        await super()._refresh(view, seen)
        self._notes.append(Refresh(view, begun_s, self._now_s()))


def settings_of(
    url: str, share: float, look_every_s: float, notes: list[Refresh], now_s: Clock, targets: str = ""
) -> Settings:
    """Write the settings of a project of all views, which may refresh for a share of the time. ``targets``
    are lines of settings for the source."""
    kind = SourceKind(ViewSettings, lambda own, around: NotedViews(own, around, notes, now_s))
    text = f"""
        [budget]
        requests = "50/s"
        seconds = "{share * 3600:g}s/h"
        [[source]]
        name = "house"
        kind = "view"
        url = "{url}"
        look_every = {look_every_s}
        counter_lag = {COUNTER_LAG_S}
        {targets}
    """
    return parse_settings(text, kinds={**BUILT_IN, "view": kind})


def run_engine(url: str, load: Load, share: float, *, look_every_s: float, targets: str = "") -> Ran:
    """Refresh all views once; then start the load, and run the engine beside it."""
    writer = Writer(url, load.writes(), prompt=True)
    notes: list[Refresh] = []
    settings = settings_of(url, share, look_every_s, notes, writer.now_s, targets)
    with tempfile.TemporaryDirectory() as folder:
        with make_engine(
            settings_of(url, 1.0, look_every_s, [], writer.now_s), Path(folder), seed=1
        ) as engine:
            engine.run(once=True)
        with make_engine(settings, Path(folder), seed=1) as engine:
            thread = writer.begin()
            engine.run(for_s=load.seconds)
            thread.join()
            return Ran(notes, writer.committed, engine.status())

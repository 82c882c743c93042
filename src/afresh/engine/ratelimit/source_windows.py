"""Which sources may not be polled now, by their windows, and until when."""

from __future__ import annotations

from afresh.engine.settings.tables import Settings


def closed_sources(settings: Settings, now_s: float) -> dict[str, float]:
    """Return the names of sources that are outside their windows, and when the next window of each opens.

    >>> from afresh.engine.settings.parsing import parse_settings
    >>> closed_sources(parse_settings("[[source]]\\nname = 'web'\\nwindows = ['01:00-02:00']"), 0.0)
    {'web': 3600.0}
    """
    opens_s = {
        table.settings.name: table.settings.open_windows.next_opening_s(now_s) for table in settings.sources
    }
    return {name: when_s for name, when_s in opens_s.items() if when_s > now_s}

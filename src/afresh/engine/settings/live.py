"""The settings that a run follows, which a reload may exchange."""

from __future__ import annotations

from afresh.engine.settings.tables import Settings


class LiveSettings:
    """Holds the settings of now; every part of a run reads ``now`` each time it needs them."""

    def __init__(self, settings: Settings) -> None:
        self.now = settings

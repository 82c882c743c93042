"""SIGHUP: the settings read again, and what changed said in words; wrong settings leave the old ones."""

from __future__ import annotations

import logging
from collections.abc import Callable

from afresh.engine.logs import say
from afresh.engine.loop import Loop
from afresh.engine.settings import Settings, changes
from afresh.values.errors import AfreshError


def reloader(loop: Loop, reload: Callable[[], Settings]) -> Callable[[], None]:
    """What the signal calls."""

    def again() -> None:
        try:
            settings = reload()
        except AfreshError as error:
            say(logging.WARNING, "settings not reloaded", problem=str(error))
            return
        found = changes(loop.settings, settings)
        try:
            found += loop.reload(settings)
        except AfreshError as error:
            say(logging.WARNING, "settings not reloaded", problem=str(error))
            return
        for words in found or ["nothing changed"]:
            say(logging.INFO, "settings reloaded", change=words)

    return again

"""SIGHUP: the settings are read again, and what changed is logged; wrong settings change nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from afresh.engine.logs import log_event
from afresh.engine.runner.engine_run import Run
from afresh.engine.settings.describing import describe_changes
from afresh.engine.settings.overrides import SettingWithOrigin
from afresh.engine.settings.tables import Settings
from afresh.values.errors import AfreshError


def ineffective_changes(before: Settings, after: Settings, overrides: Mapping[str, str]) -> list[str]:
    """Return what changed in the file without effect, because an option or variable overrides it.

    >>> from afresh.engine.settings.parsing import parse_settings
    >>> over = {"budget.requests": SettingWithOrigin("5/s", "--budget 5/s")}
    >>> ineffective_changes(parse_settings(""), parse_settings("[budget]\\nrequests = '2/s'"), over)
    ['budget.requests in the file is another, but --budget 5/s goes over it']
    """
    found = []
    for path, said in overrides.items():
        if _setting_at(before, path) != _setting_at(after, path):
            # Without the value that ``--set`` holds, which may be secret.
            origin = said.origin.partition("=")[0] if isinstance(said, SettingWithOrigin) else "an option"
            found.append(f"{path} in the file is another, but {origin} goes over it")
    return found


def _setting_at(settings: Settings, path: str) -> object:
    """Return the value of a setting such as ``budget.requests`` or ``source.web.delay``."""
    table, *names, key = path.split(".")
    found = settings.source(names[0]) if names else None
    return getattr(found.settings if found else getattr(settings, table, None), key, None)


class Reloader:
    """Reloads the settings of a run on request; a request that comes before the run is built waits for it."""

    def __init__(self, reload: Callable[[], Settings]) -> None:
        self._reload = reload
        self._run: Run | None = None
        self._is_waiting = False

    def attach(self, run: Run) -> None:
        self._run = run
        if self._is_waiting:
            self.request()

    def request(self) -> None:
        """Read the settings, let the run follow, and log what changed; wrong settings change nothing."""
        run = self._run
        if run is None:
            self._is_waiting = True
            return
        try:
            settings = self._reload()
            found = describe_changes(run.settings, settings)
            found += run.reload(settings)
        except AfreshError as error:
            log_event(logging.WARNING, "settings not reloaded", problem=str(error))
            return
        for words in found or ["nothing changed"]:
            log_event(logging.INFO, "settings reloaded", change=words)

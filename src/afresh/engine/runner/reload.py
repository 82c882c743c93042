"""Reloads the settings on SIGHUP and logs what changed; invalid settings change nothing."""

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
    """Return which settings changed in the file without effect, because an option or variable overrides them.

    >>> from afresh.engine.settings.parsing import parse_settings
    >>> over = {"budget.requests": SettingWithOrigin("5/s", "--budget 5/s")}
    >>> ineffective_changes(parse_settings(""), parse_settings("[budget]\\nrequests = '2/s'"), over)
    ['budget.requests changed in the file, but --budget 5/s overrides it']
    """
    found = []
    for path, text in overrides.items():
        if _setting_at(before, path) != _setting_at(after, path):
            # The value after ``--set name=`` is left out because it may be secret.
            origin = text.origin.partition("=")[0] if isinstance(text, SettingWithOrigin) else "an option"
            found.append(f"{path} changed in the file, but {origin} overrides it")
    return found


def _setting_at(settings: Settings, path: str) -> object:
    """Return the value of a setting such as ``budget.requests`` or ``source.web.delay``."""
    table, *names, key = path.split(".")
    found = settings.source(names[0]) if names else None
    return getattr(found.settings if found else getattr(settings, table, None), key, None)


class Reloader:
    """Reloads the settings of a run on request. A request before ``attach`` is served by ``attach``."""

    def __init__(self, reload: Callable[[], Settings]) -> None:
        self._reload = reload
        self._run: Run | None = None
        self._is_waiting = False

    def attach(self, run: Run) -> None:
        self._run = run
        if self._is_waiting:
            self.request()

    def request(self) -> None:
        """Read the settings, apply them to the run, and log what changed; invalid settings change nothing."""
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

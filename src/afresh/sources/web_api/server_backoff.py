"""The back-off of a whole source after an answer that is not a proper one, also of status 200."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from afresh.sources.capabilities import GroupBackoff
from afresh.sources.http.settings import WebSettings
from afresh.sources.web_api.records_answer import RecordsAnswer
from afresh.values.backoff import Backoff
from afresh.values.clock import Clock
from afresh.values.fetched import Fetched, FetchedKind


class ServerBackoff:
    """No request is sent before ``until_s`` (Unix seconds). The wait doubles with every failure in a row."""

    def __init__(self, settings: WebSettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._now = GroupBackoff(settings.name, -math.inf)

    @property
    def until_s(self) -> float:
        return self._now.until_s

    def start(self, answer: RecordsAnswer, count: int) -> list[Fetched]:
        """Start a back-off after an answer with a problem; return ``count`` results that report it. If the
        server asks for fewer requests, only the wait that it asks for is added: its host rests already."""
        settings, now_s = self._settings, self._clock.now_s()
        kind: FetchedKind = "refused" if answer.refused else "failed"
        if answer.limited:
            wait_s = answer.retry_after_s or 0.0
            self._now = GroupBackoff(settings.name, now_s + wait_s, self._now.failures, answer.problem)
            return [Fetched(kind, problem=answer.problem, retry_after_s=answer.retry_after_s)] * count
        failures = self._now.failures + 1
        rest_s = Backoff(settings.first_rest, settings.longest_rest).wait_s(failures)
        rest_s = max(rest_s, answer.retry_after_s or 0.0)
        self._now = GroupBackoff(settings.name, now_s + rest_s, failures, answer.problem)
        return [Fetched(kind, problem=answer.problem, retry_after_s=rest_s)] * count

    def clear(self) -> None:
        self._now = GroupBackoff(self._settings.name, -math.inf)

    def save(self) -> tuple[GroupBackoff, ...]:
        return (self._now,) if self._now.until_s > self._clock.now_s() else ()

    def load(self, backoffs: Sequence[GroupBackoff]) -> list[GroupBackoff]:
        """Load the saved back-off of this source; return those of hosts."""
        longest_s = self._clock.now_s() + self._settings.longest_rest
        for backoff in backoffs:
            if backoff.group == self._settings.name:
                self._now = replace(backoff, until_s=min(backoff.until_s, longest_s))
        return [backoff for backoff in backoffs if backoff.group != self._settings.name]

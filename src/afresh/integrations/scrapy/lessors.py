"""Where a crawl takes its leases from: a project folder in this process, or an afresh that serves its API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from scrapy.settings import BaseSettings

from afresh.engine.app import open_engine
from afresh.engine.engine import Engine
from afresh.engine.json_rows import LeaseRows, answer_row, parse_report
from afresh.engine.lending import LeaseKey
from afresh.values.errors import InputError, StoreError, UsageError
from afresh.values.units import format_duration, parse_duration

_TIMEOUT_S = 60.0
_LONGEST_PROBLEM = 300


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """Which leases a crawl takes: of one source or of all, for ``duration_s`` seconds."""

    source: str | None
    duration_s: float


class Lessor(Protocol):
    """Lends items. All calls block and are made in threads. Leases and reports are JSON objects as in the API
    (``afresh.engine.json_rows``). Calls raise ``StoreError`` if they may succeed later."""

    def lease(self, count: int, terms: LeaseTerms) -> tuple[list[dict[str, Any]], float]:
        """Return a tuple (leases, seconds after which more can be leased)."""

    def report(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Report polls; return the answers in their order."""

    def release(self, leases: Sequence[LeaseKey]) -> None:
        """Give leases back without a poll."""

    def close(self) -> None: ...


class ProjectLessor:
    """Lends the items of a project folder, without another process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def lease(self, count: int, terms: LeaseTerms) -> tuple[list[dict[str, Any]], float]:
        engine = self._engine
        lent = engine.lending.lend(count, terms.duration_s, terms.source)
        rows = LeaseRows(engine.store, engine.settings)
        return [rows.row(lease) for lease in lent.leases], lent.retry_after_s

    def report(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        now_s = self._engine.clock.now_s()
        try:
            polls = [parse_report(row, now_s) for row in rows]
        except InputError as error:
            raise UsageError(f"a report is wrong: {error}") from None
        found = self._engine.lending.record(polls, skip_invalid=True)
        return [answer_row(answer) for answer in found.answers]

    def release(self, leases: Sequence[LeaseKey]) -> None:
        self._engine.lending.release(leases)

    def close(self) -> None:
        self._engine.close()


class HttpLessor:
    """Lends the items of an afresh that serves its API at ``url``."""

    def __init__(self, url: str, token: str) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise UsageError(f"AFRESH_URL is {url!r}: give an address such as http://127.0.0.1:8321")
        self._url, self._token = f"{url.rstrip('/')}/api/v1", token

    def lease(self, count: int, terms: LeaseTerms) -> tuple[list[dict[str, Any]], float]:
        body = {"count": count, "source": terms.source, "duration": format_duration(terms.duration_s)}
        answer = self._post("leases", body)
        return answer["leases"], float(answer["retry_after"])

    def report(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        answers: list[dict[str, Any]] = self._post("observations", {"observations": list(rows)})["answers"]
        return answers

    def release(self, leases: Sequence[LeaseKey]) -> None:
        if leases:
            rows = [{"item": one.item, "lease": one.token, "source": one.source} for one in leases]
            self._post("leases/release", {"leases": rows})

    def close(self) -> None:
        """Do nothing: every request has a connection of its own."""

    def _post(self, path: str, body: object) -> Any:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
        request = Request(f"{self._url}/{path}", json.dumps(body).encode(), headers)
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                problem = error.read().decode(errors="replace")[:_LONGEST_PROBLEM]
            words = f"afresh at {self._url} answered {error.code}: {problem}"
            raise (StoreError if error.code >= 500 else UsageError)(words) from None
        except (URLError, OSError, ValueError) as error:
            raise StoreError(f"afresh at {self._url} does not answer: {error}") from None


def open_lessor(settings: BaseSettings) -> Lessor:
    """Return the lessor that ``AFRESH_PROJECT``, or ``AFRESH_URL`` and ``AFRESH_TOKEN``, name."""
    folder, url = settings.get("AFRESH_PROJECT"), settings.get("AFRESH_URL")
    if bool(folder) == bool(url):
        raise UsageError("give either AFRESH_PROJECT (a folder) or AFRESH_URL, in the settings of Scrapy")
    if folder:
        return ProjectLessor(open_engine(Path(str(folder))))
    token = settings.get("AFRESH_TOKEN")
    if not token:
        raise UsageError("AFRESH_URL needs AFRESH_TOKEN: the token is in the file web.token of the project")
    return HttpLessor(str(url), str(token))


def read_terms(settings: BaseSettings) -> LeaseTerms:
    """Return the terms that the settings ``AFRESH_SOURCE`` and ``AFRESH_LEASE`` state."""
    source = settings.get("AFRESH_SOURCE")
    return LeaseTerms(
        str(source) if source else None, parse_duration(str(settings.get("AFRESH_LEASE", "10m")))
    )

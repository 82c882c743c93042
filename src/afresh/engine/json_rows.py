"""Leases and reported polls as JSON objects: the same for ``due --json``, ``observe`` and the API."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import Any

from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import SOURCE_STATE
from afresh.sources.http.saved_hosts import read_state
from afresh.sources.http.statuses import http_date_s
from afresh.sources.http.trust import SavedTrust
from afresh.sources.http.validators import CONDITIONS, sendable_validators
from afresh.stores.store import Store
from afresh.values.errors import InputError
from afresh.values.items import Item
from afresh.values.lease import Lease
from afresh.values.reported import ReportAnswer, Reported
from afresh.values.units import time_or_nan

_CHECKED = 16  # every 16th lease has no validators, so that a host which wrongly answers 304 is found out
_MOST_COUNT = 10**9
_LATEST_S = 1e15  # larger numbers are no times and no durations
_LONGEST = 100  # characters of a wrong value in a message


class LeaseRows:
    """Writes leases as JSON objects. It reads from the store how far the validators of hosts are trusted."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self._trust: dict[str, SavedTrust] = {}

    def row(self, lease: Lease | Item) -> dict[str, Any]:
        """Return the object of a lease, or of an item that is due but not leased. Times are Unix seconds."""
        row = {
            "item": lease.key,
            "source": lease.source,
            "group": lease.group,
            "weight": lease.weight,
            "last_poll": lease.polled_s,
        }
        if isinstance(lease, Item):
            return row
        return row | {
            "lease": lease.token,
            "until": lease.until_s,
            "not_before": lease.not_before_s,
            "validators": self._sendable(lease),
        }

    def _sendable(self, lease: Lease) -> dict[str, str]:
        """Return the validators that a conditional request should have: those that are trusted and belong to
        a copy which was compared by today's rules."""
        table = self._settings.source(lease.source)
        if table is None or (lease.item_id + lease.token) % _CHECKED == 0:
            return {}
        if lease.source not in self._trust:
            self._trust[lease.source] = read_state(
                self._store.state.get(SOURCE_STATE + lease.source) or b""
            ).trust
        url, settings = lease.validators.get("url", lease.key), table.settings
        validators = {name: lease.validators[name] for name in CONDITIONS if name in lease.validators}
        if lease.content_hash is not None:  # else the program keeps the copies itself
            recipe = settings.recipe.for_item(lease.selector).fingerprint
            validators = sendable_validators(lease, url, recipe, settings.least_similarity)
        if settings.kind != "http" or not validators:  # trust is learned by hosts and classes of URLs
            return validators
        trusted = self._trust[lease.source].check_probabilities(lease, url)
        return {name: value for name, value in validators.items() if name in trusted}


def answer_row(answer: ReportAnswer) -> dict[str, Any]:
    """Return the answer to a reported poll as an object."""
    return {
        "item": answer.item,
        "lease": answer.lease,
        "result": answer.result,
        "problem": answer.problem,
        "changed": answer.changed,
        "status": answer.status,
        "next_poll": answer.next_poll_s,
    }


def parse_report(given: object, now_s: float, row: int = 0) -> Reported:
    """Return the reported poll that a JSON object describes. Its time is ``now_s`` if it states none. Raise
    ``InputError`` with the number ``row`` if a field is wrong. Fields with other names are ignored.

    >>> parse_report({"item": "a", "status": 429, "retry_after": 60}, 9.0).retry_after_s
    60.0
    >>> parse_report({"item": "a", "changed": "perhaps"}, 9.0)
    Traceback (most recent call last):
    afresh.values.errors.InputError: changed is 'perhaps': give true or false
    """
    if not isinstance(given, dict) or not isinstance(given.get("item"), str) or not given["item"]:
        raise InputError("must be an object with an item", row=row or None, line=0)
    read = _Fields(given, row)
    time_s = read.moment("time")
    validators = {"etag": read.text("etag"), "last-modified": read.text("last_modified")}
    return Reported(
        given["item"],
        now_s if time_s is None else time_s,
        changed=read.changed(),
        content=read.content(),
        media_type=read.text("media_type"),
        lease=read.whole("lease", 0, 2**63 - 1, "the number that came with the lease"),
        row=row,
        count=read.whole("count", 0, _MOST_COUNT, "the number of changes since the last poll"),
        modified_s=read.moment("modified"),
        status=read.whole("status", 100, 599, "an HTTP status"),
        failure=read.text("failure"),
        retry_after_s=read.number("retry_after"),
        bytes=read.whole("bytes", 0, 2**53, "the bytes received") or 0,
        seconds=read.number("seconds") or 0.0,
        validators={name: value for name, value in validators.items() if value},
        url=read.text("url"),
        source=read.text("source") or None,
    )


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields of one JSON object. Each method returns one field, or raises ``InputError``."""

    given: dict[str, Any]
    row: int

    def fault(self, name: str, right: str) -> InputError:
        words = f"{name} is {_shorten(self.given[name])}: give {right}"
        return InputError(words, row=self.row or None, line=0)

    def text(self, name: str) -> str:
        given = self.given.get(name)
        if given is None or isinstance(given, str):
            return given or ""
        raise self.fault(name, "text")

    def number(self, name: str) -> float | None:
        given = self.given.get(name)
        if given is None:
            return None
        if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < _LATEST_S:
            return float(given)
        raise self.fault(name, "a number of seconds, 0 or more")

    def whole(self, name: str, least: int, most: int, right: str) -> int | None:
        given = self.given.get(name)
        if given is None or (
            isinstance(given, int) and not isinstance(given, bool) and least <= given <= most
        ):
            return given
        raise self.fault(name, right)

    def moment(self, name: str) -> float | None:
        """Return a time in Unix seconds, which the field states in such seconds, in ISO 8601, or as an HTTP
        date."""
        given = self.given.get(name)
        if given is None:
            return None
        if isinstance(given, int | float) and not isinstance(given, bool) and abs(given) < _LATEST_S:
            return float(given)
        found = _read_moment(given) if isinstance(given, str) else None
        if found is None:
            raise self.fault(name, "Unix seconds or ISO 8601")
        return found

    def changed(self) -> bool | None:
        given = self.given.get("changed")
        if given is None or given in (0, 1):  # False == 0 and True == 1
            return None if given is None else bool(given)
        raise self.fault("changed", "true or false")

    def content(self) -> bytes | None:
        if self.given.get("content") is not None:
            return self.text("content").encode(errors="replace")
        if self.given.get("content_base64") is None:
            return None
        try:
            return base64.b64decode(self.text("content_base64"), validate=True)
        except ValueError as error:
            words = f"content_base64 is not base64: {error}"
            raise InputError(words, row=self.row or None, line=0) from None


def _shorten(value: object) -> str:
    """Return a wrong value for a message, cut if it is long."""
    try:
        text = repr(value)
    except RecursionError:
        return "a value with many levels"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _read_moment(text: str) -> float | None:
    """Return the Unix seconds of a text, or None if it is not a time.

    >>> _read_moment("2024-01-01"), _read_moment("Mon, 01 Jan 2024 00:00:00 GMT"), _read_moment("soon")
    (1704067200.0, 1704067200.0, None)
    """
    seconds = time_or_nan(text)
    return seconds if math.isfinite(seconds) else http_date_s(text)

"""When each record of a search source was last seen, and how fast its content changes.

δ is the dissimilarity of two versions of a record's content. The drift D of a record is the mean δ that it
accumulates per second: its changes per second λ times the mean δ of a change. The drift is estimated from the
sum of δ and the sum of the observed times t in seconds. It is drawn towards the drift d of all records with
the weight of one change:

    D = (Σδ + s)/(Σt + s/d),    where s is the mean δ of a change.

If the relation states a rate r for each record, d is not the same for all: it is c·r, where c = Σδ/Σrt over
all records. So stated rates count relative to each other, and a record's own changes soon outweigh them.

If δ is only 0 or 1, several changes between two observations look like one. Then the expected number of
changes, given at least one, is added instead of δ: x/(1 − e^{−x}) with x = λt.

Poll value: a record of weight w, last seen τ seconds ago, has the expected content lag ½wDτ² (Yang et al.
2010, §4.2). The value of refreshing it now, τ·lag(τ) − ∫lag, is wDτ³/3. If each request is the one with the
largest sum of these values, a query of cost c is sent with a frequency proportional to (ΣwD/c)^{1/3}, which
is optimal; the sum is over the records of the query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Protocol, cast

import numpy as np

from afresh.probes.dissimilarity import DISSIMILARITIES, Dissimilarity, record_change, unequal
from afresh.sources.python.user_function import find_function
from afresh.sources.search.saved_records import RecordNote
from afresh.sources.search.settings import SearchSettings
from afresh.sources.sql.canonical_json import value_json
from afresh.values.arrays import Float64s
from afresh.values.errors import UsageError, did_you_mean

_LONGEST_VALUE = 64  # characters of a field that are stored; longer values are stored as a fingerprint
_MOST_SAVED = 200_000  # records
_UNSEEN = 2.0  # a record never seen counts as seen twice as long ago as the oldest record


class TrackedRecords(Protocol):
    """Records that are tracked: their keys, their weights, and the row of each key."""

    @property
    def keys(self) -> list[str]: ...

    @property
    def weights(self) -> Float64s: ...

    @property
    def rows(self) -> dict[str, int]: ...


class RecordTracker:
    """Learns from each version of a record that is seen. Records are numbered by their row in the relation.
    ``measures`` has a measure of dissimilarity for each content field. ``rates`` are the changes per second
    that are expected of each record, NaN if unknown.

    >>> from afresh.probes.keyword_index import index_relation
    >>> from afresh.probes.keyword_index import parse_keywords
    >>> from afresh.sources.search.relation import LocalRelation
    >>> index = index_relation({"t": ["a", "b"]}, [parse_keywords("t")])
    >>> book = RecordTracker(LocalRelation(["x", "y"], index, np.ones(2), {"x": 0, "y": 1}), {"n": unequal})
    >>> book.record(0, {"n": 1}, 100.0); book.record(1, {"n": 1}, 100.0); book.record(0, {"n": 2}, 110.0)
    >>> book.record(1, {"n": 1}, 110.0); book.drift().round(3)
    array([0.105, 0.053])
    """

    def __init__(
        self,
        relation: TrackedRecords,
        measures: Mapping[str, Dissimilarity],
        rates: Float64s | None = None,
    ) -> None:
        count = len(relation.keys)
        self._relation, self._measures = relation, measures
        self._is_binary = all(measure is unequal for measure in measures.values())
        self._weights: Float64s = relation.weights
        self._relative: Float64s = np.ones(count) if rates is None else _relative_rates(rates)
        self.seen_s: Float64s = np.full(count, np.nan)
        self.not_before_s: Float64s = np.full(count, -np.inf)
        self._drifted: Float64s = np.zeros(count)
        self._observed_s: Float64s = np.zeros(count)
        self._changes: Float64s = np.zeros(count)
        self._fields: list[dict[str, str] | None] = [None] * count

    def values(self, now_s: float) -> Float64s:
        """Return the poll value of each record now; 0 for records that must not be requested yet."""
        elapsed = now_s - self.seen_s
        known = elapsed[np.isfinite(elapsed)]
        longest = float(known.max()) if known.size else 0.0
        elapsed = np.where(np.isnan(elapsed), _UNSEEN * longest + 1.0, np.maximum(elapsed, 0.0))
        value = self._weights * self.drift() * elapsed**3 / 3.0
        return np.asarray(np.where(self.not_before_s > now_s, 0.0, value))

    def set_weights(self, weights: Float64s) -> None:
        """Set the weight of each record to its weight in the relation times its number in ``weights``."""
        self._weights = self._relation.weights * weights

    def drift(self) -> Float64s:
        """Return each record's drift: the mean dissimilarity that its content accumulates per second. Until a
        change is observed, it is 1 for all records, or the stated rate divided by the mean of these."""
        relative = self._relative
        moved, watched, changes = self._drifted.sum(), self._observed_s @ relative, self._changes.sum()
        if not (moved > 0 and watched > 0):
            return relative.copy()
        one = moved / changes
        return np.asarray((self._drifted + one) / (self._observed_s + one * watched / (moved * relative)))

    def record(self, row: int, fields: Mapping[str, object], now_s: float) -> None:
        """Record the content of the record in ``row`` at ``now_s``. Raise ``InputError`` if it cannot be
        compared with the last content."""
        texts = {name: _shorten(fields[name]) for name in self._measures or fields if name in fields}
        before, elapsed = self._fields[row], now_s - self.seen_s[row]
        if before is not None and elapsed > 0:
            measures = self._measures or dict.fromkeys({*before, *texts}, unequal)
            change = record_change(before, texts, measures)
            if change > 0 and self._is_binary:  # the expected number of changes, given at least one
                x = (self._drifted[row] + 1.0) / (self._observed_s[row] + elapsed) * elapsed
                self._drifted[row] += x / -math.expm1(-x)
            else:
                self._drifted[row] += change
            self._changes[row] += change > 0
            self._observed_s[row] += elapsed
        self._fields[row], self.seen_s[row] = texts, np.fmax(now_s, self.seen_s[row])
        self.not_before_s[row] = -np.inf

    def confirm(self, row: int, now_s: float) -> None:
        """Record that the content of the record in ``row`` has not changed up to ``now_s``."""
        elapsed = now_s - self.seen_s[row]
        if elapsed > 0:
            self._observed_s[row] += elapsed
            self.seen_s[row] = now_s

    def put_off(self, row: int, until_s: float) -> None:
        self.not_before_s[row] = until_s

    def save(self) -> Iterable[RecordNote]:
        for at, key in enumerate(self._relation.keys[:_MOST_SAVED]):
            fields = self._fields[at]
            if fields is not None:
                seen_s, moved, watched_s, changes = (float(column[at]) for column in self._columns())
                yield RecordNote(key, seen_s, moved, watched_s, changes, fields)

    def load(self, notes: Iterable[RecordNote]) -> list[str]:
        """Load saved records that are newer. Return the saved keys that are not in the relation."""
        unknown = []
        for note in notes:
            at = self._relation.rows.get(note.key)
            if at is None:
                unknown.append(note.key)
            elif not note.seen_s <= self.seen_s[at]:
                self._fields[at] = dict(note.fields)
                for column, number in zip(self._columns(), note.numbers, strict=True):
                    column[at] = number
        return unknown

    def _columns(self) -> tuple[Float64s, ...]:
        return self.seen_s, self._drifted, self._observed_s, self._changes


def _relative_rates(rates: Float64s) -> Float64s:
    """Return the stated rates of the records, divided by their mean; 1 where none is stated. They are at
    least a hundredth, so that a record of which no change is expected is seen now and then."""
    if not np.nansum(rates) > 0:
        return np.ones(rates.size)
    relative = rates / np.nanmean(rates)
    return np.asarray(np.maximum(np.where(np.isnan(relative), 1.0, relative), 0.01))


def _shorten(value: object) -> str:
    text = value if isinstance(value, str) else "" if value is None else value_json(value)
    if len(text) <= _LONGEST_VALUE:
        return text
    return "#" + blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


def make_measures(settings: SearchSettings) -> Mapping[str, Dissimilarity]:
    """Return for each content field the function that measures the dissimilarity of two values."""
    found: dict[str, Dissimilarity] = {}
    for name, given in settings.fields.items():
        if given in DISSIMILARITIES:
            found[name] = DISSIMILARITIES[given]
        elif ":" in given:
            found[name] = cast(Dissimilarity, find_function(given))
        else:
            hint = did_you_mean(given, DISSIMILARITIES)
            wanted = ", ".join(DISSIMILARITIES)
            raise UsageError(f"source {settings.name!r}, fields.{name}: {given!r}{hint}: one of {wanted}")
    return found

"""What is known of each record behind a search box: when it was last seen, and how fast its content drifts.

The drift D of a record is the dissimilarity that it gathers per time, λ·E δ. Seen with Σδ over Σt, and drawn
towards the drift d of all records with the weight of one unit of change,

    D = (Σδ + s)/(Σt + s/d),    s the mean δ of a change.

Where δ only says *whether* the content differs, several changes between two looks count as one; then what is
added is the number expected behind it, x/(1 − e^{−x}) with x = λt.

What a refresh is worth: the content lag of a record seen τ ago is ½wDτ² in the mean (Yang et al. 2010, §4.2),
and the index of refreshing it now, τ·lag(τ) − ∫lag, is wDτ³/3. A budget spent by the largest sum of it per
request sends each query of a cycle with frequency ∝ (ΣwD/c)^{1/3}, which is the best.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from hashlib import blake2b

import numpy as np

from afresh.probes.dissimilarity import Dissimilarity, record_change, unequal
from afresh.sources.search.relation import LocalRelation
from afresh.sources.search.saved_state import RecordNote
from afresh.sources.sql.canonical_json import value_json
from afresh.values.arrays import Float64s

_LONGEST_VALUE = 64  # characters of a field that are remembered; of longer ones a fingerprint
_KEPT = 200_000  # records that notes tell of
_UNSEEN = 2.0  # a record never seen counts as seen so many times as long ago as any other


class RecordTracker:
    """The records of a relation, by row. ``measures`` say how much each content field differs.

    >>> from afresh.probes.keyword_index import index_relation
    >>> from afresh.probes.splitters import parse_keywords
    >>> index = index_relation({"t": ["a", "b"]}, [parse_keywords("t")])
    >>> book = RecordTracker(LocalRelation(["x", "y"], index, np.ones(2), {"x": 0, "y": 1}), {"n": unequal})
    >>> book.saw(0, {"n": 1}, 100.0); book.saw(1, {"n": 1}, 100.0); book.saw(0, {"n": 2}, 110.0)
    >>> book.saw(1, {"n": 1}, 110.0); book.drift().round(3)
    array([0.105, 0.053])
    """

    def __init__(self, relation: LocalRelation, measures: Mapping[str, Dissimilarity]) -> None:
        count = len(relation.keys)
        self._relation, self._measures = relation, measures
        self._bits = all(measure is unequal for measure in measures.values())
        self._weights: Float64s = relation.weights
        self.seen_s: Float64s = np.full(count, np.nan)
        self.not_before_s: Float64s = np.full(count, -np.inf)
        self._moved: Float64s = np.zeros(count)
        self._watched_s: Float64s = np.zeros(count)
        self._changes: Float64s = np.zeros(count)
        self._fields: list[dict[str, str] | None] = [None] * count

    def values(self, now_s: float) -> Float64s:
        """What refreshing each record now is worth; 0 for those not to be asked for yet."""
        elapsed = now_s - self.seen_s
        known = elapsed[np.isfinite(elapsed)]
        longest = float(known.max()) if known.size else 0.0
        elapsed = np.where(np.isnan(elapsed), _UNSEEN * longest + 1.0, np.maximum(elapsed, 0.0))
        worth = self._weights * self.drift() * elapsed**3 / 3.0
        return np.asarray(np.where(self.not_before_s > now_s, 0.0, worth))

    def weigh(self, weights: Float64s) -> None:
        """What each record counts for, beside the weight that the relation gives it."""
        self._weights = self._relation.weights * weights

    def drift(self) -> Float64s:
        """D of every record; 1 for all while none was seen to change."""
        moved, watched, changes = self._moved.sum(), self._watched_s.sum(), self._changes.sum()
        if not (moved > 0 and watched > 0):
            return np.ones_like(self._moved)
        one = moved / changes
        return np.asarray((self._moved + one) / (self._watched_s + one * watched / moved))

    def saw(self, place: int, fields: Mapping[str, object], now_s: float) -> None:
        """A record came, with these fields. Raises ``InputError`` where a field cannot be compared."""
        texts = {name: _short(fields[name]) for name in self._measures or fields if name in fields}
        before, elapsed = self._fields[place], now_s - self.seen_s[place]
        if before is not None and elapsed > 0:
            measures = self._measures or dict.fromkeys({*before, *texts}, unequal)
            change = record_change(before, texts, measures)
            self._changes[place] += change > 0
            self._moved[place] += self._hidden(place, elapsed) if change > 0 and self._bits else change
            self._watched_s[place] += elapsed
        self._fields[place], self.seen_s[place] = texts, max(now_s, _or(self.seen_s[place], now_s))
        self.not_before_s[place] = -np.inf

    def put_off(self, place: int, until_s: float) -> None:
        """Not to be asked for until then."""
        self.not_before_s[place] = until_s

    def _hidden(self, place: int, elapsed: float) -> float:
        """How many changes are expected where one was seen: x/(1 − e^{−x})."""
        x = (self._moved[place] + 1.0) / (self._watched_s[place] + elapsed) * elapsed
        return float(x / -math.expm1(-x))

    def notes(self) -> Iterable[RecordNote]:
        """What was learned, by key."""
        for at, key in enumerate(self._relation.keys[:_KEPT]):
            fields = self._fields[at]
            if fields is not None:
                seen_s, moved, watched_s, changes = (float(column[at]) for column in self._columns())
                yield RecordNote(key, seen_s, moved, watched_s, changes, fields)

    def recall(self, notes: Iterable[RecordNote]) -> list[str]:
        """What others learned, where it is newer; the keys of records that are not in the relation."""
        left = []
        for note in notes:
            at = self._relation.places.get(note.key)
            if at is None:
                left.append(note.key)
            elif not note.seen_s <= self.seen_s[at]:
                self._fields[at] = dict(note.fields)
                for column, number in zip(self._columns(), note.numbers, strict=True):
                    column[at] = number
        return left

    def _columns(self) -> tuple[Float64s, ...]:
        return self.seen_s, self._moved, self._watched_s, self._changes


def _or(value: float, other: float) -> float:
    return other if math.isnan(value) else value


def _short(value: object) -> str:
    text = value if isinstance(value, str) else "" if value is None else value_json(value)
    if len(text) <= _LONGEST_VALUE:
        return text
    return "#" + blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()

"""How far copies are off, where values are known: the time average of |value − value of the copy|, exact."""

from __future__ import annotations

import numpy as np

from afresh.replay.change_history import ChangeHistory
from afresh.values.arrays import Bools, Float64s, Ints


def value_error(history: ChangeHistory, item: Ints, time: Float64s, begin: float) -> Float64s:
    """Of each item over (``begin``, end], visited at ``time``; NaN for a history without values.

    An item whose value at the start is not known counts as right until it first changes.

    >>> history = ChangeHistory.of(1, [0, 0], [2.0, 6.0], 0.0, 10.0, values=[5.0, 4.0], initial=[1.0])
    >>> value_error(history, np.array([0]), np.array([4.0]), 0.0).tolist()      # 4 for 2, then 1 for 4
    [1.2]
    """
    if history.value is None:
        return np.full(history.items, np.nan)
    owner, moment, value, is_visit = _events(history, item, time)
    place = np.arange(owner.size)
    opens = np.ones(owner.size, dtype=bool)
    opens[1:] = owner[1:] != owner[:-1]
    true = value[np.maximum.accumulate(np.where(is_visit, 0, place))]
    held = true[np.maximum.accumulate(np.where(is_visit | opens, place, 0))]
    until = np.append(moment[1:], history.end)
    until[np.append(opens[1:], True)] = history.end
    lasting = np.maximum(until - np.maximum(moment, begin), 0.0)
    total = np.bincount(owner, np.abs(true - held) * lasting, minlength=history.items)
    return np.asarray(total / (history.end - begin))


def _events(history: ChangeHistory, item: Ints, time: Float64s) -> tuple[Ints, Float64s, Float64s, Bools]:
    """Starts, changes and visits by item and time: whose, when, the value from then on, whether a visit."""
    assert history.value is not None
    initial = np.full(history.items, np.nan) if history.initial is None else history.initial
    changes = np.diff(history.first)
    unknown = np.flatnonzero(np.isnan(initial) & (changes > 0))
    initial = np.nan_to_num(initial)
    initial[unknown] = history.value[history.first[unknown]]
    owner = np.concatenate([np.arange(history.items), history.change_item, item])
    moment = np.concatenate([np.full(history.items, history.start), history.time, time])
    value = np.concatenate([initial, history.value, np.zeros(item.size)])
    kind = np.repeat([0, 1, 2], [history.items, history.time.size, item.size])
    order = np.lexsort((kind, moment, owner))
    return owner[order], moment[order], value[order], kind[order] == 2

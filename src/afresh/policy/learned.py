"""What an adaptive policy has learned, as arrays to keep and to start from.

Two parts, each of use alone: ``shared`` is what all items have in common (prior, season, calibration, shocks,
what notices are worth), ``rows`` is what is known of single items, a row of each array per item. Rows of some
items may be missing, or saved long before: they hold evidence, not beliefs, and meet the prior of today.
A policy that is given both at once, for all its items, goes on exactly as the one they came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from afresh.policy.belief import Belief
from afresh.policy.knowledge import Knowledge
from afresh.policy.notices import Notices
from afresh.policy.season_clock import SeasonClock
from afresh.policy.shocks import Shocks
from afresh.rates.regimes.season import HOURS, Season
from afresh.values.arrays import Float64s, Ints
from afresh.values.errors import InputError

VERSION = 1
LEAST = 1e-30
CALIBRATION = ("frequency", "found", "expected", "ratio")

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
Stored: TypeAlias = Mapping[str, npt.NDArray[Any]]


def shared_of(known: Knowledge) -> Arrays:
    """What was learned of all items together."""
    parts = {
        "belief.": copied_fields(known.belief, ("rates", "horizon", "prior")),
        "calibration.": copied_fields(known.calibration, CALIBRATION),
        "notices.": notice_arrays(known.notices) | copied_fields(known.notices, ("frequency",)),
        "season.": season_arrays(known.clock),
        "shocks.": {} if known.shocks is None else shock_arrays(known.shocks),
    }
    saved: Arrays = {"version": np.array(VERSION), "items": np.array(known.items.size)}
    return saved | {prefix + name: one for prefix, part in parts.items() for name, one in part.items()}


def put_shared(known: Knowledge, saved: Stored, *, every: bool) -> None:
    """Take over what was learned together; ``every`` item's row is to follow, so that numbers may be kept."""
    check_version(saved)
    same = every and known.items.size == int(field(saved, "items", ()))
    rates = field(saved, "belief.rates", (None,))
    known.belief.relay(rates, field(saved, "belief.prior", rates.shape))
    put_fields(known.belief, ("horizon",), saved, "belief.")
    put_fields(known.calibration, CALIBRATION, saved, "calibration.")
    put_fields(known.notices, ("frequency",), saved, "notices.")
    put_notices(known.notices, saved, "notices.")
    put_season(known.clock, saved, "season.", same_items=same)
    if known.shocks is not None:
        put_shocks(known.shocks, saved, "shocks.")


def rows_of(known: Knowledge, items: Ints) -> Arrays:
    """What is known of each of these items."""
    return {
        "last": known.items.last[items],
        "evidence": evidence_of(known.belief, items),
        "lowest": np.full(items.size, known.belief.rates[0]),
        "polled": known.belief.polled[items],
        "rate_class": known.calibration.rate_class[items],
        "quiet": known.calibration.quiet[items],
        "notices": known.notices.number[items],
    }


def put_rows(known: Knowledge, items: Ints, rows: Stored) -> None:
    """Take over what was known of each of these items."""
    n = items.size
    put_evidence(known.belief, items, field(rows, "evidence", (n, None)), field(rows, "lowest", (n,)))
    known.belief.polled[items] = field(rows, "polled", (n,))
    known.calibration.rate_class[items] = field(rows, "rate_class", (n,))
    known.calibration.quiet[items] = field(rows, "quiet", (n,))
    told = field(rows, "notices", (n, None))[:, : len(known.notices.sources)]
    known.notices.number[items, : told.shape[1]] = told
    known.items.last[items] = field(rows, "last", (n,))


def copied_fields(part: object, names: Sequence[str]) -> Arrays:
    """The named attributes as arrays of their own.

    >>> copied_fields(Notices(2, 0.5), ["frequency"])
    {'frequency': array(0.5)}
    """
    return {name: np.array(getattr(part, name)) for name in names}


def put_fields(part: object, names: Sequence[str], saved: Stored, prefix: str) -> None:
    """Set the named attributes from ``saved``; each must have the shape that it has now."""
    for name in names:
        old = getattr(part, name)
        new = field(saved, prefix + name, np.shape(old))
        setattr(part, name, type(old)(new) if np.ndim(old) == 0 else new.astype(old.dtype))


def field(saved: Stored, name: str, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
    """An array that was saved, of this shape (None: any length).

    >>> field({"last": np.zeros(3)}, "last", (2,))
    Traceback (most recent call last):
    afresh.values.errors.InputError: what was learned does not fit: last has the shape (3,), not (2,)
    """
    if name not in saved:
        raise InputError(f"what was learned does not fit: {name} is missing")
    value = np.asarray(saved[name])
    fits = len(value.shape) == len(shape)
    if not fits or any(want not in (None, is_) for is_, want in zip(value.shape, shape, strict=True)):
        wanted = str(tuple("any" if one is None else one for one in shape)).replace("'", "")
        raise InputError(f"what was learned does not fit: {name} has the shape {value.shape}, not {wanted}")
    return value


def check_version(shared: Stored) -> None:
    """Refuse what another version wrote.

    >>> check_version({"version": np.array(99)})
    Traceback (most recent call last):
    afresh.values.errors.InputError: what was learned is of version 99, this afresh reads version 1
    """
    version = int(field(shared, "version", ()))
    if version != VERSION:
        raise InputError(f"what was learned is of version {version}, this afresh reads version {VERSION}")


def evidence_of(belief: Belief, items: Ints) -> Float64s:
    """Posterior over prior: what the polls of these items said, under whatever prior comes next."""
    return np.asarray(belief.of(items) / belief.prior)


def put_evidence(belief: Belief, items: Ints, evidence: Float64s, lowest: Float64s) -> None:
    """Beliefs from evidence on a ladder that began at ``lowest``, which may not be the one of today."""
    octave = np.log2(belief.rates[1] / belief.rates[0])
    steps = np.log2(belief.rates[0] / lowest) / octave
    before = evidence.shape[1]
    moved = np.flatnonzero((np.abs(steps) > 1e-9) | (before != belief.rates.size))
    if moved.size:
        place = np.arange(belief.rates.size) + steps[moved, None]
        inside = np.clip(place, 0.0, before - 1.0)
        left = np.minimum(inside.astype(np.int64), before - 2)
        rows, part = moved[:, None], inside - left
        shifted = np.resize(evidence, (len(evidence), belief.rates.size))
        shifted[moved] = (1.0 - part) * evidence[rows, left] + part * evidence[rows, left + 1]
        evidence = shifted
    posterior = evidence * belief.prior
    total = posterior.sum(axis=1, keepdims=True)
    # Under the prior that they were saved with they sum to 1 but for rounding, and stay as they were.
    rounded = np.abs(total - 1.0) < 1e-5
    belief.rows[items] = np.where(rounded, posterior, posterior / np.maximum(total, LEAST))


def season_arrays(clock: SeasonClock) -> Arrays:
    """The profile and the polls it will next be fitted to."""
    saved: Arrays = {"profile": np.ones(HOURS) if clock.season is None else clock.season.profile.copy()}
    saved["gain"] = np.array(0.0 if clock.season is None else clock.season.gain)
    for place, name in enumerate(("item", "now", "elapsed", "changed")):
        saved[name] = np.concatenate([np.zeros(0), *(one[place] for one in clock.log)])
    saved["lengths"] = np.array([one[0].size for one in clock.log], dtype=np.int64)
    return saved


def put_season(clock: SeasonClock, saved: Stored, prefix: str, *, same_items: bool) -> None:
    """Set the clock as it was; its polls too where the items have the numbers they had."""
    if clock.season is None:
        return
    profile = field(saved, prefix + "profile", (HOURS,)).astype(np.float64)
    clock.season = Season(profile, clock.season.hour, float(field(saved, prefix + "gain", ())))
    clock.log.clear()
    clock.logged = 0
    if not same_items:
        return
    lengths = field(saved, prefix + "lengths", (None,)).astype(np.int64)
    total = int(lengths.sum())
    kinds = (("item", np.int64), ("now", np.float64), ("elapsed", np.float64), ("changed", np.bool_))
    cut = np.cumsum(lengths)[:-1]
    columns = [np.split(field(saved, prefix + name, (total,)).astype(kind), cut) for name, kind in kinds]
    if lengths.size:
        clock.log.extend(zip(*columns, strict=True))
    clock.logged = total


def shock_arrays(shocks: Shocks) -> Arrays:
    """What was learned of every family, by its label."""
    saved = copied_fields(shocks, (*Shocks.COMMON, "labels"))
    for name in Shocks.TABLES:
        saved[name] = getattr(shocks, name)[:-1].copy()
    return saved


def put_shocks(shocks: Shocks, saved: Stored, prefix: str) -> None:
    """Take over the families that still exist; nothing where the kinds of families are others."""
    if prefix + "share" not in saved or np.shape(saved[prefix + "share"]) != shocks.share.shape:
        return
    put_fields(shocks, Shocks.COMMON, saved, prefix)
    labels = field(saved, prefix + "labels", (None,))
    _, mine, theirs = np.intersect1d(shocks.labels, labels, return_indices=True)
    for name in Shocks.TABLES:
        table = getattr(shocks, name)
        table[mine] = field(saved, prefix + name, (labels.size, *table.shape[1:]))[theirs]
    shocks.renew()


def notice_arrays(notices: Notices) -> Arrays:
    """What the notices of every source have been worth."""
    return {"sources": np.array(notices.sources, dtype=np.str_)} | copied_fields(notices, Notices.COUNTS)


def put_notices(notices: Notices, saved: Stored, prefix: str) -> None:
    """The sources as they were; what waits for single items comes with their rows."""
    notices.sources = [str(one) for one in field(saved, prefix + "sources", (None,))]
    known = len(notices.sources)
    for name in Notices.COUNTS:
        setattr(notices, name, field(saved, prefix + name, (known,)).astype(np.float64))
    notices.number = np.zeros((len(notices.number), known), dtype=np.float32)

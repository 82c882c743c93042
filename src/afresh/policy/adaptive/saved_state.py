"""Saves the state of an adaptive policy as arrays, and restores it in another process.

There are two parts, and each is useful alone. The *shared* arrays hold what was learned about all items
together: prior, season, calibration, shocks, and how reliable notices are. The *row* arrays hold what is
known about single items, with one row per item. Rows may be missing or may have been saved long ago. They
hold the evidence of polls (posterior/prior) and not the belief, so they can be combined with the present
prior. A policy that restores both parts for all its items continues exactly like the policy that saved them.

The tables of keys below define the stored format. Stores of older versions contain these keys, so a key must
never change. The attribute that belongs to it may be renamed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from afresh.policy.adaptive.age_priors import UNKNOWN
from afresh.policy.adaptive.notice_model import COUNTS, NoticeModel
from afresh.policy.adaptive.rate_belief import RateBelief, initial_prior
from afresh.policy.adaptive.season_clock import SeasonClock
from afresh.policy.adaptive.shocks import DEEPEST, FIRST_MEAN, Shocks, family_labels, with_general_family
from afresh.rates.season import HOURS, Season
from afresh.values.arrays import Float64s, Ints
from afresh.values.errors import InputError

if TYPE_CHECKING:
    from afresh.policy.adaptive.adaptive import Adaptive

VERSION = 1
_SMALLEST = 1e-30
_BLOCK_ROWS = 16_384
_REFIT_NOW = 1 << 40  # more polls than any policy counts: it fits its prior again with the next poll

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
Stored: TypeAlias = Mapping[str, npt.NDArray[Any]]

# Stored key → attribute of the policy. Arrays that must be converted (the season's polls, the tables of
# families, the evidence of items) have their own functions below.
SHARED_KEYS = {
    "belief.rates": "belief.rates",
    "belief.horizon": "belief.horizon",
    "belief.prior": "belief.prior",
    "calibration.frequency": "calibration.frequency",
    "calibration.found": "calibration.found",
    "calibration.expected": "calibration.expected",
    "calibration.ratio": "calibration.ratio",
    "calibration.all_found": "calibration.all_found",
    "calibration.all_ratio": "calibration.all_ratio",
    "notices.heard": "notices.received",
    "notices.quiet_heard": "notices.unconfirmed",
    "notices.time": "notices.time",
    "notices.quiet_time": "notices.unchanged_time",
    "notices.changes": "notices.changes",
    "notices.followed": "notices.followed",
    "notices.frequency": "notices.frequency",
    "learned_for": "learning_time",
    "bound": "review_value",
    "since_rekey": "polls_since_rekey",
    "since_refit": "polls_since_refit",
    "refit_gap": "refit_gap",
}
SHOCK_KEYS = {
    "shocks.width": "bin_width",
    "shocks.origin": "first_bin",
    "shocks.share": "share",
    "shocks.pool": "pooled_mean",
    "shocks.support": "support",
    "shocks.own_rate": "mean_own_rate",
}
FAMILY_KEYS = {
    "shocks.all_found": "total_found",
    "shocks.all_seen": "total_seen",
    "shocks.evidence": "evidence",
    "shocks.found": "found",
    "shocks.seen": "seen",
    "shocks.rise": "unreviewed_rise",
}
ROW_KEYS = {
    "last": "items.last_poll",
    "polled": "belief.polled",
    "polls": "belief.polls",
    "age": "belief.ages.octave",
    "rate_class": "calibration.rate_class",
    "quiet": "calibration.unchanged_run",
    "spared": "baseline_information",
    "look": "next_review",
}
SHOCK_ROW_KEYS = {"shocks.exposed": "exposed", "shocks.felt": "felt"}
_SEASON_POLLS = {"item": np.int64, "now": np.float64, "elapsed": np.float64, "changed": np.bool_}
# ``RateBelief.reset`` restores the grid of rates, before the rows, whose length it sets.
_LADDER = ("belief.rates", "belief.prior")


# Version 0.1.0 did not count the polls of an item. Each item that it polled is assumed to have this many.
POLLS_BEFORE = 100
# Older versions knew no general family: at first none is assumed, so that items are ranked as they were. The
# next refit gives it the share that every kind of family has at least.
UNHEARD_OF = 1e-9


def _with_later_keys(saved: Stored) -> Stored:
    """The shared arrays with those that version 0.1.0 did not write: families were trusted as they were, and
    what was learned of notices held for all hosts."""
    found, ratio = (field(saved, f"calibration.{name}", (None, None)) for name in ("found", "ratio"))
    later: Arrays = {"calibration.all_found": found, "calibration.all_ratio": ratio}
    later |= {
        "shocks.support": np.array(DEEPEST),
        "shocks.own_rate": np.array(0.0),
        "shocks.rise": np.zeros(np.size(saved.get("shocks.labels", ()))),
    }
    origins = np.size(field(saved, "notices.sources", (None,)))
    later |= {
        "notices.hosts": np.zeros(0, dtype=np.int64),
        "notices.host_counts": np.zeros((0, len(COUNTS), origins)),
        "notices.everywhere": np.ones(origins, dtype=bool),
        "notices.followed": field(saved, "notices.heard", (origins,)),
    }
    return {**later, **saved}


def save_shared(policy: Adaptive) -> Arrays:
    """Return what the policy has learned about all items together."""
    saved: Arrays = {"version": np.array(VERSION), "items": np.array(policy.items.size)}
    saved |= {key: np.array(attrgetter(path)(policy)) for key, path in SHARED_KEYS.items()}
    saved |= {"notices.sources": np.array(policy.notices.origins, dtype=np.str_)}
    if policy.belief.ages.table is not None:
        saved["belief.age_priors"] = policy.belief.ages.table.copy()
    saved["notices.hosts"], saved["notices.host_counts"] = policy.notices.saved_hosts()
    saved["notices.everywhere"] = policy.notices.is_everywhere.copy()
    saved |= _season_arrays(policy.clock)
    if policy.shocks is not None:
        saved |= {key: np.array(getattr(policy.shocks, name)) for key, name in SHOCK_KEYS.items()}
        saved |= {"shocks.labels": policy.shocks.labels.copy()}
        # The last row of each table belongs to items without a family and is always empty.
        saved |= {key: getattr(policy.shocks, name)[:-1].copy() for key, name in FAMILY_KEYS.items()}
    return saved | {"budget": np.array(policy.items.budget)}


def restore_shared(policy: Adaptive, saved: Stored, *, all_rows_follow: bool) -> None:
    """Restore what was learned about all items together.
    ``all_rows_follow`` says that the row of every item will be restored too. Only then do the saved item
    numbers (of the season's polls) still mean the same items."""
    check_version(saved)
    saved = _with_later_keys(saved)
    same_items = all_rows_follow and policy.items.size == int(field(saved, "items", ()))
    rates = field(saved, "belief.rates", (None,))
    policy.belief.reset(rates, field(saved, "belief.prior", rates.shape))
    if "belief.age_priors" in saved:
        policy.belief.ages.table = field(saved, "belief.age_priors", (rates.size + 1, rates.size)).copy()
    _restore_notices(policy.notices, saved)
    for key, path in SHARED_KEYS.items():
        if key not in _LADDER:
            owner, _, name = path.rpartition(".")
            _put(attrgetter(owner)(policy) if owner else policy, name, saved, key)
    _restore_season(policy.clock, saved, same_items=same_items)
    if policy.shocks is not None:
        _restore_shocks(policy.shocks, saved)
        policy.pass_own_rates(np.arange(policy.items.size))


def without_items(saved: Stored, items: Ints, families: Ints) -> Arrays:
    """Return the shared arrays without what these ``items`` taught: their polls are left out of the season,
    their ``families`` (a column for each kind) start again, and prior and calibration are learned again from
    the other items."""
    kept = {key: np.array(value) for key, value in saved.items()}
    kept["belief.prior"] = initial_prior(kept["belief.rates"])
    kept.pop("belief.age_priors", None)
    kept["since_refit"] = np.array(_REFIT_NOW)
    for key, value in ((key, value) for key, value in kept.items() if key.startswith("calibration.")):
        if key != "calibration.frequency":
            value[...] = 1.0 if key.endswith("ratio") else 0.0
    others = ~np.isin(kept["season.item"], items)
    groups = np.repeat(np.arange(kept["season.lengths"].size), kept["season.lengths"])
    kept["season.lengths"] = np.bincount(groups[others], minlength=kept["season.lengths"].size)
    kept |= {f"season.{name}": kept[f"season.{name}"][others] for name in _SEASON_POLLS}
    if np.size(kept.get("shocks.share", ())) > families.shape[1]:
        families = with_general_family(families, int(kept["items"]))
    labels = family_labels(families)[families >= 0]
    for key in FAMILY_KEYS.keys() & kept.keys():
        kept[key][np.isin(kept["shocks.labels"], labels)] = 0
    return kept


def save_rows(policy: Adaptive, items: Ints) -> Arrays:
    """Return what is known about these items, as arrays with a row for each item."""
    saved: Arrays = {key: attrgetter(path)(policy)[items] for key, path in ROW_KEYS.items()}
    if policy.shocks is not None:
        saved |= {key: getattr(policy.shocks, name)[items] for key, name in SHOCK_ROW_KEYS.items()}
    return saved | {
        "evidence": np.asarray(policy.belief.posteriors(items) / policy.belief.prior_of(items)),
        "lowest": np.full(items.size, policy.belief.rates[0]),
        "notices": policy.notices.pending[items],
    }


def restore_rows(policy: Adaptive, items: Ints, rows: Stored) -> None:
    n = items.size
    rows = {"age": np.full(n, UNKNOWN, dtype=np.int8), **rows}  # older versions kept no ages
    evidence, lowest = field(rows, "evidence", (n, None)), field(rows, "lowest", (n,))
    policy.belief.ages.octave[items] = field(rows, "age", (n,))  # tells which prior goes with the evidence
    restore_evidence(policy.belief, items, evidence, lowest)
    rows = {"polls": POLLS_BEFORE * field(rows, "polled", (n,)).astype(np.int64), **rows}
    pending = field(rows, "notices", (n, None))[:, : len(policy.notices.origins)]
    policy.notices.take_pending(items, pending, policy.notices.origins[: pending.shape[1]])
    for key, path in ROW_KEYS.items():
        attrgetter(path)(policy)[items] = field(rows, key, (n,))
    for key, name in SHOCK_ROW_KEYS.items():
        if policy.shocks is not None and key in rows:  # older versions did not tell members apart
            getattr(policy.shocks, name)[items] = field(rows, key, (n,))
    policy.pass_own_rates(items)


def field(saved: Stored, key: str, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
    """Return a saved array; raise ``InputError`` if it is missing or has another shape (None: any length).

    >>> field({"last": np.zeros(3)}, "last", (2,))
    Traceback (most recent call last):
    afresh.values.errors.InputError: what was learned does not fit: last has the shape (3,), not (2,)
    """
    if key not in saved:
        raise InputError(f"what was learned does not fit: {key} is missing")
    value = np.asarray(saved[key])
    fits = len(value.shape) == len(shape)
    if not fits or any(want not in (None, is_) for is_, want in zip(value.shape, shape, strict=True)):
        wanted = str(tuple("any" if one is None else one for one in shape)).replace("'", "")
        raise InputError(f"what was learned does not fit: {key} has the shape {value.shape}, not {wanted}")
    return value


def check_version(shared: Stored) -> None:
    """Raise ``InputError`` if the state was saved in another version of the format.

    >>> check_version({"version": np.array(99)})
    Traceback (most recent call last):
    afresh.values.errors.InputError: what was learned is of version 99, this afresh reads version 1
    """
    version = int(field(shared, "version", ()))
    if version != VERSION:
        raise InputError(f"what was learned is of version {version}, this afresh reads version {VERSION}")


def restore_evidence(belief: RateBelief, items: Ints, evidence: Float64s, lowest: Float64s) -> None:
    """Set the posteriors of ``items`` from evidence that may have been saved on another grid of rates.
    ``evidence`` is posterior/prior, with a row per item. ``lowest`` is the lowest rate of the grid on which
    each row was saved. Between two rates of the old grid the evidence is interpolated."""
    # In blocks: with very many items the intermediate results would take several times their memory.
    for begin in range(0, items.size, _BLOCK_ROWS):
        some = slice(begin, begin + _BLOCK_ROWS)
        _restore_block(belief, items[some], evidence[some], lowest[some])


def _restore_block(belief: RateBelief, items: Ints, evidence: Float64s, lowest: Float64s) -> None:
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
    posterior = evidence * belief.prior_of(items)
    total = posterior.sum(axis=1, keepdims=True)
    # If the prior is the one of the time of saving, rows sum to 1 up to rounding and must stay as they were.
    rounded = np.abs(total - 1.0) < 1e-5
    belief.posterior[items] = np.where(rounded, posterior, posterior / np.maximum(total, _SMALLEST))


def _put(part: object, name: str, saved: Stored, key: str) -> None:
    """Set the attribute ``name`` of ``part`` from a saved array, which must have the attribute's shape."""
    old = getattr(part, name)
    new = field(saved, key, np.shape(old))
    if np.ndim(old) == 0:
        setattr(part, name, type(old)(new))
    else:
        old[...] = new  # in place: it may be a view of a larger array


def _season_arrays(clock: SeasonClock) -> Arrays:
    """Return the hour-of-week profile, and the polls to which the next profile will be fitted."""
    season = clock.season
    saved: Arrays = {"season.profile": np.ones(HOURS) if season is None else season.profile.copy()}
    saved["season.gain"] = np.array(0.0 if season is None else season.gain)
    for column, name in enumerate(_SEASON_POLLS):
        saved[f"season.{name}"] = np.concatenate([np.zeros(0), *(one[column] for one in clock.recent)])
    saved["season.lengths"] = np.array([one[0].size for one in clock.recent], dtype=np.int64)
    return saved


def _restore_season(clock: SeasonClock, saved: Stored, *, same_items: bool) -> None:
    """Restore the clock's profile, and its polls if the items have the same numbers as when it was saved."""
    if clock.season is None:
        return
    profile = field(saved, "season.profile", (HOURS,)).astype(np.float64)
    clock.season = Season(profile, clock.season.hour, float(field(saved, "season.gain", ())))
    clock.recent.clear()
    clock.recent_count = 0
    if not same_items:
        return
    lengths = field(saved, "season.lengths", (None,)).astype(np.int64)
    total, cut = int(lengths.sum()), np.cumsum(lengths)[:-1]
    columns: Iterable[Any] = (
        np.split(field(saved, f"season.{name}", (total,)).astype(kind), cut)
        for name, kind in _SEASON_POLLS.items()
    )
    if lengths.size:
        clock.recent.extend(zip(*columns, strict=True))
    clock.recent_count = total


def _restore_notices(notices: NoticeModel, saved: Stored) -> None:
    """Take over the origins and what each host's notices were worth; ``SHARED_KEYS`` has the sums."""
    origins = [str(one) for one in field(saved, "notices.sources", (None,))]
    notices.reset(origins)
    hosts = field(saved, "notices.hosts", (None,)).astype(np.int64)
    counts = field(saved, "notices.host_counts", (hosts.size, len(COUNTS), len(origins)))
    notices.restore_hosts(hosts, counts, field(saved, "notices.everywhere", (len(origins),)))


def _with_general_family(saved: Stored, shocks: Shocks) -> Stored:
    """Return the saved arrays with the kind of the general family, which older versions did not have."""
    kinds = np.size(saved.get("shocks.share", ()))
    if not kinds or not shocks.is_last_general or kinds != shocks.share.size - 1:
        return saved
    number, kind = np.divmod(field(saved, "shocks.labels", (None,)), kinds)
    return {
        **saved,
        "shocks.share": np.append(saved["shocks.share"], UNHEARD_OF),
        "shocks.pool": np.append(saved["shocks.pool"], FIRST_MEAN),
        "shocks.labels": number * (kinds + 1) + kind,
    }


def _restore_shocks(shocks: Shocks, saved: Stored) -> None:
    """Restore the families that still exist, or nothing if the number of kinds of families has changed."""
    saved = _with_general_family(saved, shocks)
    if np.shape(saved.get("shocks.share", 0)) != shocks.share.shape:
        return
    for key, name in SHOCK_KEYS.items():
        _put(shocks, name, saved, key)
    labels = field(saved, "shocks.labels", (None,))
    _, mine, theirs = np.intersect1d(shocks.labels, labels, return_indices=True)
    for key, name in FAMILY_KEYS.items():
        table = getattr(shocks, name)
        table[mine] = field(saved, key, (labels.size, *table.shape[1:]))[theirs]
    shocks.update_all()

"""Whether a view is stale: whether what it stands on looks otherwise than when it was last refreshed; pure.

The state of a view is a stamp for each of its parts: of parts reached directly, their stamps just before
the refresh; of parts reached through another materialised view, the stamps in that view's own state, whose
content is what was copied. Where a part is reached on several ways and they disagree, the older stamp
stays, for some of the view's content is as old. What is written while a refresh runs makes the view stale:
never too fresh, at times a refresh too many.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from afresh.sources.views.catalogue import Catalogue, Stamp

State: TypeAlias = Mapping[str, Stamp]


def state_after(view: str, seen: Catalogue, states: Mapping[str, State]) -> State:
    """The state of a view refreshed just after ``seen``, from the states of the views that it stands on.

    A view below that was never refreshed under our eyes has no state: its parts then have none here.
    """
    parts, items = seen.direct(view)
    state = {name: seen.relations[name].stamp for name in parts}
    unknown: set[str] = set()
    for item in items:
        for name in seen.parts(item):
            now, then = seen.relations[name].stamp, states.get(item, {}).get(name)
            if then is None:
                unknown.add(name)
            elif then != now:
                state[name] = then
            else:
                state.setdefault(name, now)
    return {name: stamp for name, stamp in state.items() if name not in unknown}


def is_stale(view: str, seen: Catalogue, state: State | None) -> bool:
    """Whether anything below the view moved since its state, or is new; without a state it is taken to be."""
    if state is None or not seen.relations[view].populated:
        return True
    parts = seen.parts(view)
    return state.keys() != parts or any(seen.relations[name].stamp != state[name] for name in parts)


def is_known(view: str, seen: Catalogue, state: State | None) -> bool:
    """Whether staleness can be seen: the view has a state, and all that it stands on is watched."""
    return state is not None and all(seen.relations[name].watched for name in seen.parts(view))


def rows_moved(before: Stamp, now: Stamp) -> int | None:
    """How many rows were written between two looks, None if the counter was set back in between.

    A table whose file was replaced (TRUNCATE) has changed by one row at least.

    >>> [rows_moved(Stamp(5, 1), now) for now in (Stamp(9, 1), Stamp(5, 2), Stamp(2, 1))]
    [4, 1, None]
    """
    if now.changes < before.changes:
        return None
    return max(now.changes - before.changes, int(now.version != before.version))

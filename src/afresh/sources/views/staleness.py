"""Whether a view is stale: whether its parts differ from those at its last refresh; pure.

The state of a view is a stamp for each of its parts. For parts reached directly it is their stamp just before
the refresh. For parts reached through another materialised view it is the stamp in the state of that view,
because that content was copied. If a part is reached on several ways that disagree, the older stamp counts,
because some of the view's content is that old. Rows written while a refresh runs make the view stale: that
may cause a refresh too many, but never hides a change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from afresh.sources.views.catalogue import Catalogue, Stamp

State: TypeAlias = Mapping[str, Stamp]


def state_after(view: str, seen: Catalogue, states: Mapping[str, State]) -> State:
    """Return the state of a view refreshed just after ``seen``, from the states of the views below it.

    A view below that was never refreshed by us has no state; its parts then have no stamp here.
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
    """Tell whether anything below the view changed or is new since its state; without a state it did."""
    if state is None or not seen.relations[view].populated:
        return True
    parts = seen.parts(view)
    return state.keys() != parts or any(seen.relations[name].stamp != state[name] for name in parts)


def is_known(view: str, seen: Catalogue, state: State | None) -> bool:
    """Tell whether staleness can be observed: the view has a state, and all its parts are watched."""
    return state is not None and all(seen.relations[name].watched for name in seen.parts(view))


def rows_written(before: Stamp, now: Stamp) -> int | None:
    """Return how many rows were written between two readings, None if the counter was reset in between.

    A table whose file was replaced (TRUNCATE) counts as at least one row.

    >>> [rows_written(Stamp(5, 1), now) for now in (Stamp(9, 1), Stamp(5, 2), Stamp(2, 1))]
    [4, 1, None]
    """
    if now.changes < before.changes:
        return None
    return max(now.changes - before.changes, int(now.version != before.version))

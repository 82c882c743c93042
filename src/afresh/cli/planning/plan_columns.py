"""The columns of a plan, and the choice of some of them with ``--columns``."""

from __future__ import annotations

from afresh.tables.columns import NUMBER, TEXT, Kind
from afresh.values.errors import one_of

PLAN_COLUMNS = ("item", "frequency", "interval", "freshness", "age", "marginal", "status")
_TEXTS = ("item", "status")


def choose_columns(given: str | None) -> dict[str, Kind]:
    """Return the kinds of the columns to write, by name; all of them if none are given.

    >>> choose_columns("item, frequency")
    {'item': 'text', 'frequency': 'number'}
    """
    names = PLAN_COLUMNS if given is None else [name.strip() for name in given.split(",")]
    kinds: dict[str, Kind] = {}
    for name in names:
        kinds[one_of("column", name, PLAN_COLUMNS)] = TEXT if name in _TEXTS else NUMBER
    return kinds

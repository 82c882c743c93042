"""The options by which ``list``, ``set``, ``remove`` and ``export`` select items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

from typer import Option

from afresh.cli.engine.project import known_source
from afresh.values.errors import one_of

if TYPE_CHECKING:
    from afresh.engine.engine import Engine
    from afresh.engine.reporting.item_selection import ItemSelection

Match: TypeAlias = Annotated[
    str | None, Option("--match", metavar="GLOB", help="Items whose whole key matches, such as '*/docs/*'.")
]
WithStatus: TypeAlias = Annotated[
    str | None,
    Option(
        "--status",
        metavar="STATUS",
        help="Items with this status: active, paused, gone, refused, new, failing or unlinked.",
    ),
]
FromSource: TypeAlias = Annotated[
    str | None, Option("--source", metavar="NAME", help="Items of this source only.")
]


def read_selection(
    engine: Engine, match: str | None, source: str | None, status: str | None
) -> ItemSelection:
    """Return the selection that the options ask for; raise ``UsageError`` for an unknown source or status."""
    from afresh.engine.reporting.item_selection import SELECTED_STATUSES, ItemSelection

    name = known_source(engine, source)
    if status is not None:
        one_of("status", status, SELECTED_STATUSES)
    wanted = next((known for known in SELECTED_STATUSES if known == status), None)
    return ItemSelection(match or "", name, wanted)

"""What sources have in common whose items are all one group: a name, that group, and windows."""

from __future__ import annotations

from afresh.sources.open_hours import OpenHours
from afresh.sources.settings import SourceSettings


class SingleGroupSource:
    """A source whose items are asked for at one place: their group has the source's name.

    >>> shop = SingleGroupSource(SourceSettings(kind="sql", name="shop"))
    >>> shop.name, shop.group("any key")
    ('shop', 'shop')
    """

    def __init__(self, settings: SourceSettings) -> None:
        self._name, self._hours = settings.name, OpenHours(settings.open_windows)

    @property
    def name(self) -> str:
        """The source's name in the settings."""
        return self._name

    def group(self, key: str) -> str:
        """All items are one group."""
        del key
        return self._name

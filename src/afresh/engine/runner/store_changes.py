"""What others did to the store since the last look: items added, changed, removed and noticed."""

from __future__ import annotations

from afresh.stores.store import Store
from afresh.values.stored import PolicyColumns


class StoreChanges:
    """What others did to the store since the last look; called in the store's thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.edit = store.items.edits(0).number
        self.notice = 0

    def added(self, after_id: int) -> list[PolicyColumns]:
        """Items registered since."""
        return list(self._store.plan.columns(after_id=after_id))

    def edited(self) -> tuple[tuple[int, ...], PolicyColumns | None, bool]:
        """Items changed or removed since, as they are now; False if too much happened to tell."""
        edits = self._store.items.edits(self.edit)
        self.edit = edits.number
        if not edits.complete or not edits.item_ids:
            return edits.item_ids, None, edits.complete
        return edits.item_ids, self._store.plan.columns_of(edits.item_ids), True

    def noticed(self) -> list[int]:
        """Items noticed since."""
        notices = self._store.notices.open(self.notice)
        self.notice = max((notice.number for notice in notices), default=self.notice)
        return [notice.item_id for notice in notices]

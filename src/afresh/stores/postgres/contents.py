"""Contents, each kept once under the hash of its bytes, compressed, counted by the versions that use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from afresh.stores.polls import Packed
from afresh.stores.postgres.arrays import arrays
from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.queries import load_blocks

_SQL = load_blocks("contents.sql")


@dataclass(slots=True)
class Growth:
    """How the sizes of a store change in one transaction."""

    versions: int = 0
    contents: int = 0
    content_bytes: int = 0
    stored_bytes: int = 0


def keep_contents(connection: Connection, copies: Sequence[Packed], growth: Growth) -> dict[bytes, int]:
    """The ids of contents by address, each used once more per copy; bytes that nobody has yet are written."""
    if not copies:
        return {}
    uses, by_address = Counter(copy.address for copy in copies), {copy.address: copy for copy in copies}
    # In one order for all, so that no two workers wait for each other in a circle.
    wanted = [(address, len(by_address[address].copy.content), uses[address]) for address in sorted(uses)]
    kept = rows(connection, _SQL["keep"], arrays(("hashes", "sizes", "uses"), wanted))
    new = [(content_id, by_address[address]) for content_id, address, refs in kept if refs == uses[address]]
    if new:
        payloads = [(content_id, copy.data) for content_id, copy in new]
        rows(connection, _SQL["keep_payloads"], arrays(("ids", "data"), payloads))
    growth.contents += len(new)
    growth.content_bytes += sum(len(copy.copy.content) for _, copy in new)
    growth.stored_bytes += sum(len(copy.data) for _, copy in new)
    return {address: content_id for content_id, address, _ in kept}


def drop_contents(connection: Connection, content_ids: Iterable[int], growth: Growth) -> None:
    """Each of these is used once less; what nobody uses goes."""
    uses = sorted(Counter(content_ids).items())
    if not uses:
        return
    given = arrays(("ids", "uses"), uses)
    rows(connection, _SQL["lock"], given)
    rows(connection, _SQL["drop"], given)
    gone = rows(connection, _SQL["collect"], given)
    if gone:
        payloads = rows(connection, _SQL["collect_payloads"], {"ids": [row[0] for row in gone]})
        growth.contents -= len(gone)
        growth.content_bytes -= sum(size for _, size in gone)
        growth.stored_bytes -= sum(size for (size,) in payloads)


def keep_growth(connection: Connection, growth: Growth) -> None:
    """Add to the sizes."""
    if growth != Growth():
        rows(connection, _SQL["resize"], asdict(growth))

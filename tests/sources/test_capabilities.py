"""What a source can do: stated by ours, found by their methods for those of other packages."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tests.sources.polling import lease_of, quick_source

from afresh.sources.capabilities import Capabilities, GroupBackoff, StalenessReport, find_capabilities
from afresh.values.arrays import Float64s
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease


class Plain:
    """A source of another package that only polls."""

    name = "plain"

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        """Poll one item."""
        del lease, conditional
        return Fetched("unchanged")


class Bulk(Plain):
    """One that polls many items at once."""

    def bulk_limit(self, group: str) -> int:
        """How many."""
        return len(group)

    async def poll_many(self, leases: Sequence[Lease], *, conditional: bool = True) -> list[Fetched]:
        """Poll them all."""
        return [await self.poll(lease, conditional=conditional) for lease in leases]


class OldBatchSource(Plain):
    """One that chooses as sources of version 0.1.0 did, and keeps state as they did."""

    def __init__(self) -> None:
        self.weights: Float64s | None = None
        self.recalled: Any = None

    def keys(self) -> list[str]:
        """All keys."""
        return ["a", "b"]

    def weigh(self, weights: Float64s) -> None:
        """What they count for."""
        self.weights = weights

    async def choose(self, lead: str) -> list[str]:
        """The lead and another."""
        return [lead, "b"]

    async def poll_chosen(self, leases: Sequence[Lease]) -> list[Fetched | None]:
        """Only the first comes."""
        return [Fetched("unchanged"), *[None for _ in leases[1:]]]

    def rests(self) -> tuple[GroupBackoff, ...]:
        """One group waits."""
        return (GroupBackoff("g", 5.0),)

    def notes(self) -> bytes:
        """What was learned."""
        return b"notes"

    def recall(self, rests: Sequence[GroupBackoff], notes: bytes) -> None:
        """Take it up again."""
        self.recalled = tuple(rests), notes


class OldStalenessSource(Plain):
    """One that tells staleness as sources of version 0.1.0 did."""

    recalled = b""

    def evidence(self) -> Mapping[str, StalenessReport]:
        """One item is stale."""
        return {"a": StalenessReport(1.0, changed=True, stale_since_s=3.0)}

    def memory(self) -> bytes:
        """What was seen."""
        return b"memory"

    def recall(self, memory: bytes) -> None:
        """Take it up again."""
        self.recalled = memory


def capabilities_of(source: Any) -> Capabilities:
    return find_capabilities(source)


def test_our_sources_state_what_they_can_do() -> None:
    source = quick_source()
    assert capabilities_of(source) is source.capabilities
    assert source.capabilities == Capabilities(state=source, forms=source)


def test_a_source_that_only_polls_can_do_nothing_else() -> None:
    assert capabilities_of(Plain()) == Capabilities()


def test_a_source_of_another_package_is_known_by_its_methods() -> None:
    source: Any = Bulk()
    can = capabilities_of(source)
    assert can.bulk is source
    assert (can.batches, can.staleness, can.state) == (None, None, None)


def test_a_batch_source_written_for_0_1_0_still_works() -> None:
    async def run() -> None:
        source = OldBatchSource()
        can = capabilities_of(source)
        assert can.bulk is None
        assert can.staleness is None
        assert can.batches is not None
        assert can.state is not None
        weights = np.array([1.0, 0.0])
        batch = await can.batches.choose("a", weights)
        assert batch.keys == ("a", "b")
        assert source.weights is weights
        leases = [lease_of("a"), lease_of("b")]
        assert await can.batches.poll_batch(batch, leases) == [Fetched("unchanged"), None]
        assert (await can.batches.poll(leases[0])).kind == "unchanged"
        assert can.state.backoffs() == source.rests()
        can.state.load_state(can.state.save_state(), can.state.backoffs())
        assert source.recalled == (source.rests(), b"notes")

    asyncio.run(run())


def test_a_staleness_source_written_for_0_1_0_still_works() -> None:
    source = OldStalenessSource()
    can = capabilities_of(source)
    assert can.batches is None
    assert can.staleness is not None
    assert can.state is not None
    assert can.staleness.staleness_reports() == source.evidence()
    assert can.state.backoffs() == ()
    can.state.load_state(can.state.save_state())
    assert source.recalled == b"memory"

"""What readings of the counters tell: observations, rates and costs, which outlive the process."""

from __future__ import annotations

import math

import pytest
from tests.sources.viewing import OF_A, OF_B, OF_BOTH, Warehouse


def test_each_reading_is_one_observation_and_marks_give_notices(warehouse: Warehouse) -> None:
    async def work() -> None:
        first = await warehouse.look()
        warehouse.run("INSERT INTO b SELECT n, 0 FROM generate_series(1, 500) AS n")
        second = await warehouse.look()
        moved = {
            one.key
            for one, other in zip(first.entries, second.entries, strict=True)
            if one.mark != other.mark
        }
        assert moved == {OF_B, OF_BOTH}
        told = warehouse.source.staleness_reports()
        assert {view: (one.elapsed_s, one.changed) for view, one in told.items()} == {
            OF_A: (5, False),
            OF_B: (5, True),
            OF_BOTH: (5, True),
        }
        tally = warehouse.source.tracker.tallies["public.b"]
        assert (tally.readings, tally.changed, tally.rows) == (1, 1, 500)

    warehouse.use(work)


def test_readings_close_to_each_other_make_one_observation(warehouse: Warehouse) -> None:
    async def work() -> None:
        await warehouse.look()
        for turn in range(20):
            warehouse.run(f"INSERT INTO a VALUES ({turn}, 1)")
            await warehouse.look(1.0)
            assert warehouse.source.staleness_reports()[OF_A].changed
        tally = warehouse.source.tracker.tallies["public.a"]
        assert (tally.readings, tally.changed, tally.rows) == pytest.approx((4, 4, 20), rel=1e-3)
        assert tally.seconds == pytest.approx(20, rel=1e-3)

    warehouse.use(work)


def test_rates_and_costs_are_reported(warehouse: Warehouse) -> None:
    async def work() -> None:
        await warehouse.begin()
        for turn in range(40):
            if turn % 2:
                warehouse.run(f"INSERT INTO a SELECT {turn}, {turn}")
            if turn % 8 == 0:
                warehouse.run(f"INSERT INTO b SELECT {turn * 100} + n, 0 FROM generate_series(1, 50) AS n")
            await warehouse.look(5.0)
        told = warehouse.source.staleness_reports()
        # half of the looks, five seconds apart, saw a change of a: a rate of ln 2 / 5 s
        assert told[OF_A].rate_per_s == pytest.approx(0.139, rel=0.05)
        assert told[OF_B].rate_per_s == pytest.approx(-1 / 5 * math.log(35.5 / 40.5), rel=0.05)
        both = told[OF_BOTH]
        assert both.rate_per_s == pytest.approx((told[OF_A].rate_per_s or 0) + (told[OF_B].rate_per_s or 0))
        assert both.low_per_s is not None
        assert both.high_per_s is not None
        assert both.low_per_s < (both.rate_per_s or 0) < both.high_per_s
        assert warehouse.source.tracker.tallies["public.b"].dispersion == pytest.approx(
            50 * 35 / 40, rel=0.05
        )
        assert 0 < (both.cost_s or 0) < 10

    warehouse.use(work)


def test_saved_state_outlives_the_process(warehouse: Warehouse) -> None:
    async def work() -> None:
        await warehouse.begin()
        warehouse.run("INSERT INTO b VALUES (7, 7)")
        await warehouse.look()
        kept, told = warehouse.source.save_state(), warehouse.source.staleness_reports()
        await warehouse.source.close()
        warehouse.source = warehouse.make()
        warehouse.source.load_state(kept)
        warehouse.run("INSERT INTO a VALUES (7, 7)")
        await warehouse.look()
        again = warehouse.source.staleness_reports()
        assert warehouse.stale() == {OF_A, OF_B, OF_BOTH}
        assert again[OF_B].stale_since_s == told[OF_B].stale_since_s
        assert again[OF_A].stale_since_s == warehouse.clock.time_s
        assert again[OF_A].cost_s == told[OF_A].cost_s
        assert (again[OF_A].elapsed_s, again[OF_A].changed) == (5, True)

    warehouse.use(work)


@pytest.mark.parametrize("rubbish", [b"", b"{}", b"[1]", b'{"format": 1, "time_s": 5}', b"\xff"])
def test_saved_state_that_cannot_be_read_is_ignored(warehouse: Warehouse, rubbish: bytes) -> None:
    async def work() -> None:
        warehouse.source.load_state(rubbish)
        await warehouse.begin()
        assert warehouse.stale() == set()

    warehouse.use(work)

"""Who may ask a host: claims taken, renewed, shared fairly and given up, without any process or sleep."""

from __future__ import annotations

import asyncio
import logging
import math
import subprocess
import sys
from collections.abc import Awaitable, Callable, Collection, Sequence

import pytest

from afresh.engine.logs import LOGGER
from afresh.engine.ratelimit.claims import TURN, Claims, TakenClaims
from afresh.engine.ratelimit.fleet_member import FleetMember, SteadyClock, list_workers
from afresh.engine.ratelimit.worker_name import is_dead, this_worker
from afresh.engine.state_names import LAST_LEFT
from afresh.engine.threaded_store import ThreadedStore
from afresh.stores.sqlite.memory_store import MemoryStore
from afresh.stores.store import PLANNER, group_claim
from afresh.values.clock import SystemClock
from afresh.values.stored import Worker

CLAIM_S = 10.0


class Hand:
    """A clock moved by hand, and what a store says of claims."""

    def __init__(self) -> None:
        self.now, self.back_s = 50.0, 0.0
        self.theirs: set[str] = set()
        self.grace_s, self.others = 0.0, False
        self.inherited: list[str] = []

    def now_s(self) -> float:
        return 1e9 + self.now - self.back_s

    def elapsed_s(self) -> float:
        return self.now

    async def take(self, names: Sequence[str]) -> TakenClaims:
        free = [name for name in names if name not in self.theirs]
        return TakenClaims(free, self.now + CLAIM_S, self.now + self.grace_s, self.others)

    async def inherit(self, groups: Collection[str]) -> None:
        self.inherited += groups


def on_claims(work: Callable[[Claims, Hand], Awaitable[None]]) -> None:
    """Run ``work`` with claims that are served."""

    async def whole() -> None:
        hand = Hand()
        claims = Claims(hand, CLAIM_S, hand.take, asyncio.Event())
        serving = asyncio.create_task(claims.run(hand.inherit))
        try:
            await work(claims, hand)
        finally:
            serving.cancel()

    asyncio.run(whole())


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_group_is_claimed_when_it_comes_up_and_held_until_it_runs_out() -> None:
    async def work(claims: Claims, hand: Hand) -> None:
        assert claims.ready_s("a", hand.now_s()) > hand.now_s()
        await settle()
        assert claims.ready_s("a", hand.now_s()) == hand.now_s()
        assert claims.is_open("a")
        hand.now += CLAIM_S - 1.0
        claims.record_renewal([group_claim("a")], hand.now)
        hand.now += CLAIM_S - 1.0
        assert claims.is_open("a")
        hand.now += 1.0
        assert not claims.is_open("a")

    on_claims(work)


def test_a_group_of_another_is_left_alone_and_tried_again() -> None:
    async def work(claims: Claims, hand: Hand) -> None:
        hand.theirs = {group_claim("a")}
        claims.ready_s("a", hand.now_s())
        await settle()
        assert claims.is_elsewhere("a")
        assert claims.waits_for_others
        assert not claims.is_open("a")
        wait_s = claims.ready_s("a", hand.now_s()) - hand.now_s()
        assert 0.1 < wait_s < 1.0
        hand.theirs, hand.now = set(), hand.now + wait_s
        claims.ready_s("a", hand.now_s())
        await settle()
        assert claims.is_open("a")
        assert not claims.waits_for_others

    on_claims(work)


def test_a_group_taken_over_is_asked_after_its_delay_and_with_what_others_knew() -> None:
    async def work(claims: Claims, hand: Hand) -> None:
        hand.grace_s, hand.others = 2.0, True
        claims.ready_s("a", hand.now_s())
        await settle()
        assert hand.inherited == ["a"]
        assert not claims.is_open("a")
        assert claims.ready_s("a", hand.now_s()) == hand.now_s() + 2.0
        hand.now += 2.0
        assert claims.is_open("a")

    on_claims(work)


def test_a_group_lost_to_another_is_noticed() -> None:
    async def work(claims: Claims, hand: Hand) -> None:
        claims.ready_s("a", hand.now_s())
        await settle()
        claims.record_renewal([], hand.now)
        assert not claims.is_open("a")

    on_claims(work)


def test_what_is_idle_is_given_up_and_what_is_in_use_is_not() -> None:
    async def work(claims: Claims, hand: Hand) -> None:
        for group in "ab":
            claims.ready_s(group, hand.now_s())
        await settle()
        for _ in range(3):
            hand.now += CLAIM_S - 1.0
            claims.record_renewal([group_claim("a"), group_claim("b")], hand.now)
            await claims.wait_until_open("a")
        assert claims.release_idle(math.inf, lambda group: group == "b") == [group_claim("b")]
        assert claims.is_open("a")
        assert "b" not in claims

    on_claims(work)


def test_whoever_holds_more_than_its_share_gives_up_the_excess_once_quiet() -> None:
    async def work(claims: Claims, hand: Hand) -> None:
        for group in "abcd":
            claims.ready_s(group, hand.now_s())
            await settle()
            hand.now += 0.1
        hand.now += CLAIM_S
        claims.record_renewal([group_claim(group) for group in "abcd"], hand.now)
        for group in "abcd":
            await claims.wait_until_open(group)
        assert claims.release_idle(2.0, lambda _: False) == []
        assert claims.ready_s("a", hand.now_s()) > hand.now_s()  # nothing new is begun there
        assert claims.is_open("a")  # what is under way may end
        assert claims.release_idle(2.0, lambda _: True) == [group_claim("a"), group_claim("b")]
        assert claims.is_elsewhere("a")  # it is left to others for a moment
        assert claims.release_idle(2.0, lambda _: True) == []

    on_claims(work)


def test_everybody_gets_a_turn() -> None:
    async def work(claims: Claims, hand: Hand) -> None:
        claims.ready_s("a", hand.now_s())
        await settle()
        hand.now += TURN * CLAIM_S + 0.1
        claims.record_renewal([group_claim("a")], hand.now)
        await claims.wait_until_open("a")
        assert claims.release_idle(math.inf, lambda _: True) == []  # nobody waits for it
        assert claims.release_idle(1.0, lambda _: True) == [group_claim("a")]

    on_claims(work)


def members(
    *names: str, wakeup: asyncio.Event | None = None
) -> list[tuple[MemoryStore, FleetMember, ThreadedStore]]:
    """Workers on one store."""
    store, clock, found = MemoryStore(), SystemClock(), []
    for _ in names:
        threaded = ThreadedStore(store)
        member = FleetMember(threaded, clock, wakeup or asyncio.Event(), claim_s=CLAIM_S, delay_s=1.0)
        found.append((store, member, threaded))
    return found


def test_one_is_elected_and_another_follows_when_it_leaves() -> None:
    async def work() -> None:
        (store, first, one), (_, second, two) = members("first", "second")
        await first.join()
        await second.join()
        await first.beat()
        assert (first.is_planner, second.is_planner) == (True, False)
        assert (first.is_alone, second.is_alone) == (False, False)
        now_s = SystemClock().now_s()
        assert {worker.name: worker.plans for worker in list_workers(store, now_s, CLAIM_S)} == {
            first.name: True,
            second.name: False,
        }
        await first.leave()
        await second.beat()
        assert second.is_planner
        assert second.is_alone
        assert [claim.name for claim in store.fleet.claims(now_s)] == [PLANNER]
        one.close()
        two.close()

    asyncio.run(work())


def test_an_engine_without_a_host_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        wakeup = asyncio.Event()
        (store, first, one), (_, second, two) = members("first", "second", wakeup=wakeup)
        await first.join()
        await second.join()
        store.fleet.take([group_claim("a")], first.name, SystemClock().now_s(), CLAIM_S)
        claiming = asyncio.create_task(second.claims.run(_inherit_nothing))
        second.claims.ready_s("a", SystemClock().now_s())
        async with asyncio.timeout(10.0):
            await wakeup.wait()  # set when the claim is refused
        second.report_idleness()
        second.report_idleness()
        claiming.cancel()
        one.close()
        two.close()

    with caplog.at_level(logging.INFO, LOGGER.name):
        asyncio.run(work())
    assert caplog.text.count("another engine on this store asks every host") == 1


async def _inherit_nothing(groups: Collection[str]) -> None:
    del groups


def test_the_delay_is_waited_for_only_where_somebody_may_have_asked() -> None:
    async def work() -> None:
        (store, first, one), (_, second, two) = members("first", "second")
        await first.join()
        begun_s = SystemClock().elapsed_s()
        assert (await first.take_claims(["group:a"])).open_s <= SystemClock().elapsed_s()
        await second.join()
        assert (await second.take_claims(["group:b"])).open_s >= begun_s + 1.0
        await first.leave()
        assert store.state.get(LAST_LEFT) is not None
        one.close()
        two.close()

    asyncio.run(work())


def test_a_process_that_is_no_more_is_known_to_be_dead() -> None:
    assert is_dead(name_of_the_dead())
    assert not is_dead(this_worker(SystemClock(), 0.0).name)
    assert not is_dead("somewhere:1:ffffffff:000000")


def name_of_the_dead() -> str:
    """A worker of this machine that has run, and ended without a word."""
    code = "from afresh.engine.ratelimit.worker_name import this_worker\n"
    code += "from afresh.values.clock import SystemClock\nprint(this_worker(SystemClock(), 0.0).name)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return found.stdout.strip()


def test_who_dies_beside_a_running_worker_is_replaced_at_its_next_beat() -> None:
    async def work() -> None:
        ((store, member, writer),) = members("living")
        now_s, dead = SystemClock().now_s(), name_of_the_dead()
        store.fleet.take([PLANNER, "group:a"], "living elsewhere", now_s, CLAIM_S)
        await member.join()
        assert not member.is_planner
        store.fleet.leave("living elsewhere")
        store.fleet.beat(Worker(dead, "here", now_s, now_s))
        store.fleet.take([PLANNER, "group:a"], dead, now_s, 1000.0)
        await member.beat()
        assert member.is_planner
        assert member.is_alone
        begun_s = SystemClock().elapsed_s()
        taken = await member.take_claims(["group:a"])
        assert taken.names == ("group:a",)
        # It may have asked a moment ago, and what it learned since then is not known here.
        assert taken.open_s > begun_s + 0.5
        assert taken.others
        writer.close()

    asyncio.run(work())


def test_time_goes_on_when_the_clock_is_set_back() -> None:
    hand = Hand()
    time, before_s = SteadyClock(hand), hand.now_s()
    hand.back_s = 3600.0
    assert time.now_s() == pytest.approx(before_s)

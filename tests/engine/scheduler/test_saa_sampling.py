"""New items are polled as SAA says, in virtual time, and then handed over to the ordinary policy."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engine.living import settings_for
from tests.engine.virtual_site import VirtualSite

from afresh.engine.engine import Engine
from afresh.engine.external_scheduler import ExternalScheduler
from afresh.rates.saa import SelfAdaptive

GUESS = "saa_guess = '3/m'"
GUESS_PER_S, LATEST_S = 0.05, 4.5  # a poll waits for the budget and for the next look at the ranking


def times_of(site: VirtualSite, page: int) -> list[float]:
    return [time_s for time_s, path in site.requests if path == f"/p/{page}"]


def follow_saa(site: VirtualSite, page: int) -> tuple[SelfAdaptive, int]:
    """Check that each poll of a page came when SAA says, by the site's own account of its changes, until SAA
    was done. Return its last state, and the number of polls after that."""
    first_s, *later = times_of(site, page)
    state = SelfAdaptive.start(GUESS_PER_S, at=first_s)
    for at, time_s in enumerate(later):
        due_s = state.next_poll()
        if due_s is None:
            return state, len(later) - at
        assert due_s - 0.05 <= time_s <= due_s + LATEST_S, (page, at)
        changed = site.version(page, time_s + 0.001) > site.version(page, state.last_poll + 0.001)
        state = state.observe(changed, time_s)
    return state, 0


def run(engine: Engine, site: VirtualSite, for_s: float) -> None:
    engine.add(site.urls())
    engine.run(for_s=for_s)


def test_pages_are_polled_when_saa_says_so_and_then_by_their_poll_value(tmp_path: Path) -> None:
    """Page 0 needs one round, page 1 doublings, page 2 divisions; pages of one host of their own each."""
    site = VirtualSite([0.06, 0.3, 0.005], hosts=3, lasts_s=2000.0)
    with site.engine(tmp_path, budget="0.5/s", more="[plan]\naudit_share = 0.0", source=GUESS) as engine:
        run(engine, site, 260.0)
        (one, after_one), (fast, _), (slow, after_slow) = (follow_saa(site, page) for page in range(3))
        assert (one.done, one.polls, after_one > 8) == (True, 8, True)
        assert (fast.doublings > 0, slow.divisions > 0, slow.done, after_slow) == (True, True, False, 0)
        assert not any("SAA" in words for words in engine.why(site.url(0)).reasons)
        why = engine.why(site.url(2))
        assert any("SAA polls it every" in words for words in why.reasons)
        assert slow.next_poll() is not None
        assert why.next_s == pytest.approx(slow.next_poll() or 0.0, abs=0.1)


def test_a_restart_and_those_who_fetch_continue_with_the_same_state(tmp_path: Path) -> None:
    site = VirtualSite([0.0, 0.06], hosts=2, lasts_s=2000.0)
    with site.engine(tmp_path, budget="0.5/s", source=GUESS) as engine:
        run(engine, site, 90.0)
    with site.engine(tmp_path, budget="0.5/s", source=GUESS) as engine:
        scheduler = ExternalScheduler(engine.store, site.time).refresh(engine.current(), site.time.now_s())
        state = scheduler.policy.sampling.state(0)
        assert state is not None
        polls = len(times_of(site, 0))
        assert (state.polls, state.changed) == (polls, (False,) * (polls - 1))
        assert polls >= 4
        assert [item.key for item in engine.due(5, within_budget=False)] == []
        due_s = state.next_poll()
        assert due_s is not None
        site.time.passed_s += due_s - site.time.now_s() + 0.01
        assert site.url(0) in [item.key for item in engine.due(5, within_budget=False)]


def test_without_the_setting_or_after_its_removal_nothing_is_sampled(tmp_path: Path) -> None:
    site = VirtualSite([0.01], lasts_s=1000.0)
    with site.engine(tmp_path, budget="1/s", source=GUESS) as engine:
        run(engine, site, 10.0)
        scheduler = ExternalScheduler(engine.store, site.time).refresh(engine.current(), site.time.now_s())
        sampling = scheduler.policy.sampling
        assert sampling.state(0) is not None
        sampling.follow_settings(settings_for(), scheduler.names)
        assert sampling.state(0) is None
        assert sampling.due_s()[0] != sampling.due_s()[0], "NaN: the poll value decides"
    with site.engine(tmp_path, budget="1/s") as engine:
        before = len(times_of(site, 0))
        engine.run(for_s=15.0)
        assert len(times_of(site, 0)) > before + 5

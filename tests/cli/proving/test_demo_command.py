"""The demo: the site's account is exact, the comparison runs on real engines, and nothing is left behind."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from tests.servers.signalled import processes_of
from tests.servers.site import Answer, Seen, page
from tests.servers.threaded import served
from tests.slow_cases import with_slow_cases
from tests.waiting import LIMIT_S, until

from afresh.cli.proving.demo import comparison
from afresh.cli.proving.demo.changing_site import DemoSite
from afresh.cli.proving.demo.comparison import Allowance, DemoResult, new_site
from afresh.cli.proving.demo.picture import demo_figure
from afresh.cli.proving.demo.rival_clients import HalvedOrGrown, InTurn, RivalClient, Rule
from afresh.cli.proving.demo.running_copy import RunningCopy
from afresh.cli.proving.demo.screen import NAMES, Screen
from afresh.cli.proving.demo.site_scores import Score, score_copies, score_polls
from afresh.policy.policy import PolicyInput
from afresh.policy.registry import make_policy
from afresh.replay.change_history import ChangeHistory
from afresh.replay.policy_run import NoticeLog, run_policy
from afresh.sources.http.listings.feeds import read_feed
from afresh.values.arrays import Float64s, Ints
from afresh.values.errors import AfreshError, StoreError

pytestmark = pytest.mark.waits


class HandClock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.s = 100.0

    def now_s(self) -> float:
        return self.s

    def elapsed_s(self) -> float:
        return self.s


def ask(site: DemoSite, path: str, agent: str = "demo-a", etag: str = "") -> tuple[int, str, str]:
    """Status, ETag and body."""
    url = f"http://127.0.0.1:{site.port}{path}"
    headers = {"User-Agent": agent, **({"If-None-Match": etag} if etag else {})}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, str(answer.headers["ETag"]), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, str(error.headers["ETag"]), ""


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def site(clock: HandClock) -> Iterator[DemoSite]:
    """Two pages, one of which never changes, whose days are seconds of the clock. The first one counts three
    times as much as the second, and the feed announces its changes."""
    weights = np.array([3.0, 1.0])
    with DemoSite(np.array([1.0, 0.0]), ("demo-a", "demo-b"), clock, weights=weights, announced=[0]) as site:
        yield site


def test_the_site_stands_still_until_it_begins(site: DemoSite, clock: HandClock) -> None:
    clock.s += 1000
    assert ask(site, "/page/0")[1] == '"0-0"'
    assert (site.has_all(0), site.requests(0), site.now_d) == (False, 1, 0.0)
    ask(site, "/page/1")
    assert site.has_all(0)
    assert not site.has_all(1)
    site.begin(1.0, 50.0, np.random.default_rng(1))
    assert (site.fresh(0), site.fresh(1)) == (1.0, 0.0)
    clock.s += 60
    assert site.fresh(0) == 0.25
    assert ask(site, "/page/0")[2] != ""
    assert site.fresh(0) == 1.0


def test_a_page_says_its_version_and_answers_conditional_requests(site: DemoSite, clock: HandClock) -> None:
    site.begin(1.0, 50.0, np.random.default_rng(1))
    clock.s += 20
    status, etag, body = ask(site, "/page/0")
    changes = int(np.count_nonzero(site.history(20.0).change_item == 0))
    assert (status, etag) == (200, f'"0-{changes}"')
    assert f"Version {changes}<" in body
    assert changes > 0
    assert ask(site, "/page/0", etag=etag)[0] == 304
    assert ask(site, "/page/0", etag='"0-0"')[0] == 200
    assert ask(site, "/page/2")[0] == ask(site, "/nothing")[0] == 404
    assert ask(site, "/robots.txt")[0] == 200
    assert site.visits(0)[0].tolist() == [0, 0, 0]  # the pages that are there, and nothing else
    assert (site.requests(0), site.requests(1)) == (6, 0)
    clock.s += 1
    ask(site, "/page/1")
    assert site.requests_between(0, 20.0, 21.0) == 1


def test_the_feed_announces_the_latest_changes(site: DemoSite, clock: HandClock) -> None:
    assert read_feed(ask(site, "/feed.xml")[2].encode(), site.feed).entries == ()
    site.begin(1.0, 50.0, np.random.default_rng(1))
    clock.s += 20
    body = ask(site, "/feed.xml")[2]
    changes = int(np.count_nonzero(site.history(20.0).change_item == 0))
    assert body.count("<entry>") == changes
    assert body.index(f"Version {changes}<") < body.index("Version 1<")
    assert [entry.key for entry in read_feed(body.encode(), site.feed).entries] == [site.urls()[0]]


def test_scores_are_the_time_averages_of_what_each_copy_holds(site: DemoSite, clock: HandClock) -> None:
    """Against freshness and age summed over a fine grid of moments."""
    site.begin(1.0, 50.0, np.random.default_rng(2))
    asked = {"demo-a": [0.0, 7.0, 11.0, 23.0, 30.5], "demo-b": [0.0, 28.0, 60.0]}
    for moment in sorted({*asked["demo-a"], *asked["demo-b"]}):
        clock.s = 100.0 + moment
        for agent, moments in asked.items():
            if moment in moments:
                ask(site, "/page/0", agent)
                ask(site, "/page/1", agent)
    history = site.history(40.0)
    changes = history.time[history.change_item == 0]
    grid = np.arange(20.0, 40.0, 0.001) + 0.0005
    for found, moments in zip(score_copies(site, 20.0, 40.0), asked.values(), strict=True):
        visits = np.array(moments)
        last = visits[np.searchsorted(visits, grid) - 1]
        lacking = np.append(changes, np.inf)[np.searchsorted(changes, last, side="right")]
        stale = lacking < grid
        assert found.important == found.announced == pytest.approx(np.mean(~stale), abs=2e-4)
        assert found.ordinary == 1.0
        assert found.freshness == pytest.approx((3 * np.mean(~stale) + 1) / 4, abs=2e-4)
        assert found.age_d == pytest.approx(np.mean(np.where(stale, grid - lacking, 0.0)) * 0.75, abs=2e-2)
        assert found.requests == 2 * np.count_nonzero((visits > 20) & (visits <= 40))


def saving(seed: int) -> tuple[Score, Score, Score]:
    """What the policy of afresh and the two rivals achieve on the demo's site, without HTTP or waiting: one
    request after another, exactly at the budget, with a feed that is read every ten days."""
    rng = np.random.default_rng(seed)
    site, span_d = new_site(rng), comparison.SPAN_D
    pages = site.rates.size
    changes = [np.sort(rng.uniform(0, span_d, rng.poisson(rate * span_d))) for rate in site.rates]
    item = np.repeat(np.arange(pages), [each.size for each in changes])
    history = ChangeHistory.of(pages, item, np.concatenate(changes), 0.0, span_d, weights=site.weights)
    budget = pages / comparison.ROUND_D
    told = np.isin(history.change_item, site.announced)
    read_d = np.ceil(history.time[told] / 10.0) * 10.0
    order = np.argsort(read_d, kind="stable")
    notices = NoticeLog(history.change_item[told][order], read_d[order], np.zeros(order.size, int), ("feed",))
    start = PolicyInput.of(pages, budget, weights=site.weights)
    visits = run_policy(history, make_policy("adaptive", start), budget, notices=notices, batch=10)
    turn = rng.permutation(pages).tolist()
    rules: tuple[Rule, ...] = (InTurn(turn), HalvedOrGrown(turn, first_d=comparison.ROUND_D))
    times = np.arange(1, budget * span_d) / budget
    polls = [(visits.item, visits.time), *((polled_by(rule, changes, times), times) for rule in rules)]
    afresh, uniform, rule = (
        score_polls(history, *poll, span_d / 2, requests=round(budget * span_d / 2), announced=site.announced)
        for poll in polls
    )
    return afresh, uniform, rule


def polled_by(rule: Rule, changes: Sequence[Float64s], times: Float64s) -> Ints:
    """The pages that a rule polls at these times, after a first fetch of all pages."""
    versions, pages = [0] * len(changes), []
    for now_d in times.tolist():
        page = rule.next()
        version = int(np.searchsorted(changes[page], now_d, side="right"))
        rule.learn(page, now_d, changed=version != versions[page])
        versions[page] = version
        pages.append(page)
    return np.array(pages)


@pytest.mark.parametrize("seed", with_slow_cases(list(range(1, 11)), kept=1))
def test_the_demo_shows_a_saving(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten of ten, with a fifth of the demo's pages."""
    monkeypatch.setattr(comparison, "PAGES", 200)
    afresh, uniform, rule = saving(seed)
    assert afresh.uniform_needs > 1.2
    assert uniform.uniform_needs == pytest.approx(1.0, abs=0.15)
    assert rule.uniform_needs < min(1.15, afresh.uniform_needs)  # with 200 pages, chance moves it by a tenth
    assert afresh.important > uniform.important + 0.05


def test_the_rule_of_crawlers_halves_and_grows_within_its_limits() -> None:
    rule = HalvedOrGrown([0], first_d=30.0)
    now_d = 0.0
    for changed, interval_d in ((True, 15.0), (False, 22.5), *[(True, None)] * 9, (True, 1.0)):
        assert rule.next() == 0
        rule.learn(0, now_d, changed=changed)
        if interval_d is not None:
            assert rule.interval_d[0] == interval_d
    for _ in range(20):
        rule.learn(rule.next(), now_d, changed=False)
    assert rule.interval_d[0] == 365.0


def test_a_rival_fetches_every_page_once_and_then_polls_at_its_budget(site: DemoSite) -> None:
    allowed = asked = 0

    def count_asked() -> int:
        nonlocal asked
        asked += 1
        return allowed

    with RivalClient("demo-b", site.port, [0, 1], InTurn([1, 0]), lambda: site.now_d) as rival:
        until(lambda: site.has_all(1), "the rival has every page")
        rival.begin(count_asked)
        until(lambda: asked >= 3, "the rival asks again what it may do")
        assert site.requests(1) == 2  # it was told three times that it may do nothing
        allowed = 4
        until(lambda: site.requests(1) >= 6, "the rival polls")
        rival.check()
    assert site.visits(1)[0].tolist() == [0, 1, 1, 0, 1, 0]
    assert site.requests(0) == 0


def test_a_rival_that_ends_is_reported() -> None:
    with served({}) as nothing:
        port = int(nothing.url.rpartition(":")[2])
    with (
        RivalClient("demo-b", port, [0], InTurn([0]), lambda: 0.0) as rival,
        pytest.raises(AfreshError, match="the copy kept by demo-b ended too early: "),
    ):
        until(rival.check, "the rival ends")


class LameCopy:
    """Misses a share of the moments of its budget, and follows another budget with the next asking."""

    def __init__(self, per_s: float) -> None:
        self.made, self.missed, self.asked = 0.0, 0.0, [per_s, per_s]

    def after(self, seconds: float) -> None:
        self.made += self.asked[-2] * (1 - self.missed) * seconds


def test_a_copy_that_misses_moments_makes_all_of_its_requests(clock: HandClock) -> None:
    copy = LameCopy(330.0)
    allowance = Allowance(lambda: int(copy.made), copy.asked.append, 330.0, clock)

    def made_in(seconds: float) -> float:
        before = copy.made
        for _ in range(int(seconds / 2.5)):
            clock.s += 2.5
            copy.after(2.5)
            allowance.steer()
        return (copy.made - before) / seconds

    copy.missed = 1 / 7
    made_in(40.0)
    assert made_in(40.0) == pytest.approx(330.0, rel=0.01)
    copy.missed = 0.6
    assert made_in(40.0) == pytest.approx(330.0 * 1.4 * 0.4, rel=0.1)  # as many more, and no more
    copy.missed = 0.0
    assert made_in(40.0) < 330.0 * 1.08  # most of what was not made is forgiven
    assert made_in(40.0) == pytest.approx(330.0, rel=0.01)
    assert min(copy.asked) == 330.0


def test_a_store_that_is_locked_is_asked_again(clock: HandClock) -> None:
    told: list[float] = []

    def ask(per_s: float) -> None:
        told.append(per_s)
        if len(told) == 1:
            raise StoreError("the store is locked")

    allowance = Allowance(lambda: 0, ask, 100.0, clock)
    for _ in range(2):
        clock.s += 2.5
        allowance.steer()
    assert told == pytest.approx([100.0 + 250.0 / 7, 140.0])


def result(days: float = 375.0, needs: float = 1.66, age_d: float = 4.6) -> DemoResult:
    """What a demo may find."""
    return DemoResult(
        days,
        days * 1000 / 30,
        Score(0.634, 0.79, 0.551, 0.807, age_d, 12_498, needs),
        Score(0.571, 0.572, 0.573, 0.84, 5.6, 12_499, 1.0),
        Score(0.532, 0.508, 0.546, 0.763, 9.0, 12_500, 0.67),
    )


def printed(found: DemoResult, *, width: int = 80) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    Screen(browser=False, console=console).print_result(found)
    return console.export_text()


@pytest.fixture(scope="module")
def demo_site() -> DemoSite:
    return new_site(np.random.default_rng(1))


def test_the_screen_draws_lines_on_a_terminal_and_the_result(demo_site: DemoSite) -> None:
    console = Console(force_terminal=True, width=80, record=True, file=Path(os.devnull).open("w"))  # noqa: SIM115
    with Screen(browser=False, console=console) as screen:
        screen.on_start(demo_site)
        screen.on_measurement(15.0, 50.0, "http://127.0.0.1:1/")
        for day in range(0, 750, 50):
            screen.on_sample(day, (0.57 + day / 20_000, 0.55, 0.5))
    screen.print_result(result())
    text = console.export_text()
    console.file.close()
    assert "Too short" not in text
    for words in ("·", "●", "×", "50 pages are important", "63.4%", "79.0%", "55.1%", "12,498", "4.6 days"):
        assert words in text
    assert "For the same freshness, uniform polling needs 1.7 times the requests." in text
    assert "Halve or grow is as fresh as uniform polling with 0.7 times the requests." in text
    assert "afresh run --web" in text
    assert "given up" not in text
    assert max(len(line) for line in text.splitlines() if "┤" not in line) <= 80


def test_pages_that_are_given_up_are_mentioned_if_they_make_the_copy_old() -> None:
    assert "are given up, and get old" in printed(result(age_d=9.1))


def test_requests_that_a_busy_machine_did_not_make_are_mentioned() -> None:
    assert "too busy" not in printed(result())
    busy = replace(result(), budget=25_000.0)
    assert "This machine was too busy for 50% of the allowed requests of each copy." in printed(busy)


def test_too_few_days_give_no_verdict() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    screen = Screen(browser=False, console=console)
    screen.on_measurement(1.5, 24.0, "http://127.0.0.1:1/")
    screen.print_result(result(days=18.0))
    text = " ".join(console.export_text().split())
    assert "Too short to tell: before these days, afresh could learn from 0.6 requests per page" in text
    assert "afresh demo --for 500s at this machine's pace" in text
    assert "times the requests" not in text


def test_without_the_packages_of_the_dashboard_the_demo_says_how_to_add_them() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    Screen(browser=False, console=console).on_measurement(1.5, 24.0, None)
    assert "There is no dashboard: pip install 'afresh[web]' adds it." in console.export_text()


def test_what_to_type_next_begins_with_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    activate = Path(sys.prefix, "bin", "activate")
    for path, said in (("/nowhere", True), (f"{activate.parent}", False)):
        monkeypatch.setenv("PATH", path)
        assert (f"  . {activate}\n  afresh init" in printed(result(), width=200)) == said


def test_every_line_fits_eighty_columns(demo_site: DemoSite) -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    screen = Screen(browser=False, console=console)
    screen.on_start(demo_site)
    screen.on_measurement(9.9, 75.8, "http://127.0.0.1:65535/")
    screen.on_sample(0.0, (0.6, 0.6, 0.6))
    assert max(map(len, console.export_text().splitlines())) <= 80


def test_the_picture_shows_every_copy() -> None:
    lines = {name: [0.6, 0.7] for name in NAMES}
    figure = demo_figure([0.0, 750.0], lines, result())
    over_time, saved = figure.axes
    legend = over_time.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == list(NAMES)
    assert [text.get_text() for text in saved.get_xticklabels()] == list(NAMES)
    assert "needs 1.7 times the requests" in figure.get_supxlabel()


# The demo of a small site: a tenth of the pages is there in a tenth of the time.
PAGES, FEW = 100, 30
SMALL = """\
from afresh.cli.proving.demo import comparison as demo_run
demo_run.PAGES, demo_run.FASTEST_PER_S, demo_run._WARM = {pages}, 60.0, {pages} // 5
from afresh.cli.entry import main
main()
"""


@contextmanager
def started(tmp_path: Path, *options: str, pages: int = FEW) -> Iterator[subprocess.Popen[str]]:
    """A demo whose temporary files go below ``tmp_path``; settings of the environment are not for it."""
    words = [sys.executable, "-c", SMALL.format(pages=pages), "demo", "--no-browser", *options]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "AFRESH_BUDGET_REQUESTS": "1/d"}
    demo = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=tmp_path,
        start_new_session=True,
    )
    try:
        yield demo
    finally:
        for number in processes_of(tmp_path):  # whatever went wrong, nothing is left behind
            os.kill(number, signal.SIGKILL)
        demo.communicate()


def shows_its_dashboard(demo: subprocess.Popen[str]) -> None:
    """Wait until the demo has said where its dashboard is."""
    assert demo.stderr is not None
    assert any("http://127.0.0.1" in line for line in demo.stderr)


def left_behind(tmp_path: Path) -> list[str]:
    """Files of a demo, and processes that it started."""
    return [path.name for path in tmp_path.iterdir()] + [str(number) for number in processes_of(tmp_path)]


def test_the_demo_runs_without_a_terminal_and_leaves_nothing(tmp_path: Path) -> None:
    words = ("--for", "2s", "--json", "--seed", "5", "--plot", "demo.svg")
    with started(tmp_path, *words, pages=PAGES) as demo:
        out, err = demo.communicate(timeout=LIMIT_S)
        assert demo.returncode == 0, err
    found = json.loads(out)
    for copy in ("uniform", "afresh", "rule"):
        assert 0.3 < found[copy]["freshness"] < 0.9
        assert 0 < found[copy]["requests"] <= found["budget"] * 1.1 + 64  # those under way at the edges
    assert re.search(r"http://127\.0\.0\.1:\d+/", err)
    assert re.search(r"day +\d+ +afresh 0\.\d+ +uniform 0\.\d+ +halve or grow 0\.\d+", err)
    assert "afresh add --discover" in err
    assert "<svg" in (tmp_path / "demo.svg").read_text()
    assert left_behind(tmp_path) == ["demo.svg"]


def test_requests_that_fail_do_not_hold_up_the_start(tmp_path: Path) -> None:
    """A minute's wait for one page, as on the web, would stop everything: all pages must be there first.

    With the waits of the web, three failures in a row would hold up the page for longer than we wait here.
    """
    asked, again = 0, threading.Event()

    async def fails_thrice(_seen: Seen, answer: Answer) -> None:
        nonlocal asked
        asked += 1
        if asked <= 3:
            await answer.raw(b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nhalf")
            answer.hang_up()
            return
        await answer.send(b"there")
        again.set()

    with served({"/robots.txt": page(b""), "/page/0": fails_thrice}) as site:
        pages = DemoSite(np.ones(1), ["x"])
        pages.port = int(site.url.rpartition(":")[2])
        with RunningCopy(tmp_path / "copy", pages, "x", budget_per_s=100.0) as copy:
            assert again.wait(LIMIT_S)
            copy.stop()


@pytest.mark.parametrize("number", with_slow_cases([signal.SIGINT, signal.SIGTERM], kept=1))
def test_stopped_the_demo_ends_its_copies_and_clears_up(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path, "--for", "10m") as demo:
        shows_its_dashboard(demo)
        assert len(left_behind(tmp_path)) >= 3  # the folder, the demo and the copy of afresh
        demo.send_signal(number)
        _, err = demo.communicate(timeout=LIMIT_S)
        assert demo.returncode == 128 + number, err
        assert re.fullmatch(r"(day .*\n)*afresh: stopped (at once )?by " + number.name + r"\n", err)
        assert left_behind(tmp_path) == []


def test_the_copies_of_a_demo_that_is_killed_end_with_it(tmp_path: Path) -> None:
    with started(tmp_path, "--for", "10m") as demo:
        shows_its_dashboard(demo)
        demo.kill()
        demo.wait(LIMIT_S)
        until(lambda: not processes_of(tmp_path), "the copies end")

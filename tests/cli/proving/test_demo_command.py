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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from tests.servers.signalled import processes_of
from tests.servers.site import Answer, Seen, page
from tests.servers.threaded import served
from tests.slow_cases import with_slow_cases

from afresh.cli.proving.demo.changing_site import DemoSite, cho_pages
from afresh.cli.proving.demo.comparison import Allowance
from afresh.cli.proving.demo.comparison import DemoResult as Found
from afresh.cli.proving.demo.running_copy import RunningCopy
from afresh.cli.proving.demo.screen import Screen
from afresh.cli.proving.demo.site_scores import Score, captured, captured_at_equal_requests, scores, theory
from afresh.values.errors import StoreError

pytestmark = pytest.mark.waits

RATES = cho_pages(1000, np.random.default_rng(1))


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
    """Two pages, one of which never changes, whose days are seconds of the clock."""
    with DemoSite(np.array([1.0, 0.0]), ("demo-a", "demo-b"), clock) as site:
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
    assert site.fresh(0) == 0.5
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
    assert site.requests(0) == 3  # the pages that are there, and nothing else


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
    for found, moments in zip(scores(site, 20.0, 40.0), asked.values(), strict=True):
        visits = np.array(moments)
        last = visits[np.searchsorted(visits, grid) - 1]
        lacking = np.append(changes, np.inf)[np.searchsorted(changes, last, side="right")]
        stale = lacking < grid
        assert found.freshness == pytest.approx((np.mean(~stale) + 1) / 2, abs=2e-4)
        assert found.age_d == pytest.approx(np.mean(np.where(stale, grid - lacking, 0.0)) / 2, abs=2e-2)
        assert found.requests == 2 * np.count_nonzero((visits > 20) & (visits <= 40))


def test_captured_is_0_for_uniform_and_1_for_the_optimum_whatever_was_spent() -> None:
    for requests in (12_500, 9_000):
        known, full = theory(RATES, requests / 375), theory(RATES, 12_500 / 375)
        uniform = Score(full.uniform + 0.003, 5.6, 12_500)  # a lucky history, which both saw
        for freshness, share in ((known.uniform, 0.0), (known.optimum, 1.0)):
            ours = Score(freshness + 0.003, 5.6, requests)
            found = captured_at_equal_requests(RATES, 375, uniform, ours)
            assert found == pytest.approx(share, abs=1e-9)
            if requests == uniform.requests:
                assert captured(full, uniform, ours) == pytest.approx(share, abs=1e-9)


def test_requests_that_were_not_made_cost_freshness_as_measured() -> None:
    full, known = theory(RATES, 12_500 / 375), theory(RATES, 9_000 / 375)
    uniform, ours = Score(full.uniform, 5.6, 12_500), Score(known.optimum, 5.6, 9_000)
    assert captured(full, uniform, ours) < 0.5


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


def test_the_screen_draws_lines_on_a_terminal_and_the_result() -> None:
    console = Console(force_terminal=True, width=100, record=True, file=Path(os.devnull).open("w"))  # noqa: SIM115
    known = theory(RATES, 1000 / 30)
    with Screen(browser=False, console=console) as screen:
        screen.on_start()
        screen.on_measurement(known, 15.0, 50.0, "http://127.0.0.1:1/")
        for day in range(0, 750, 50):
            screen.on_sample(day, (0.57, 0.57 + day / 20_000))
    half = Found(375, 12_500, Score(0.571, 5.6, 12_499), Score(0.601, 7.9, 12_498), known, 0.69, 0.70)
    screen.print_result(half)
    text = console.export_text()
    console.file.close()
    assert "Too short" not in text
    for words in (
        "·",
        "●",
        "requests (12,500 allowed)",
        "57.1%",
        "60.1%",
        "61.6%",
        "12,498",
        "7.9 days",
        "took 69%",
        "afresh run --web",
    ):
        assert words in text


def test_too_few_days_give_no_verdict() -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    short = Found(
        18, 593, Score(0.6, 5.6, 590), Score(0.59, 5.7, 588), theory(RATES, 1000 / 30), -0.18, -0.18
    )
    screen = Screen(browser=False, console=console)
    screen.on_measurement(short.theory, 1.5, 24.0, "http://127.0.0.1:1/")
    screen.print_result(short)
    text = console.export_text()
    assert "Too short to tell: before these days each page was asked for 0.6 times on average" in text
    assert "afresh demo --for 500s at this machine's pace" in text
    assert "-18%" not in text


def test_a_share_at_equal_requests_is_told_beside_the_measured_one() -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    known = theory(RATES, 1000 / 30)
    lame = Found(375, 12_500, Score(0.571, 5.6, 12_499), Score(0.596, 7.9, 11_000), known, 0.58, 0.72)
    Screen(browser=False, console=console).print_result(lame)
    text = console.export_text()
    assert "took 58% of what knowing every rate would gain over uniform, as measured; 72% at equal" in text


def test_what_to_type_next_begins_with_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    known = theory(RATES, 1000 / 30)
    half = Found(375, 12_500, Score(0.571, 5.6, 12_499), Score(0.601, 7.9, 12_498), known, 0.69, 0.70)
    activate = Path(sys.prefix, "bin", "activate")
    for path, said in (("/nowhere", True), (f"{activate.parent}", False)):
        monkeypatch.setenv("PATH", path)
        console = Console(width=200, record=True, file=io.StringIO())
        Screen(browser=False, console=console).print_result(half)
        assert (f"  . {activate}\n  afresh init" in console.export_text()) == said


def test_no_line_but_the_verdict_breaks_on_eighty_columns() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    known = theory(RATES, 1000 / 30)
    screen = Screen(browser=False, console=console)
    screen.on_start()
    screen.on_measurement(known, 9.9, 75.8, "http://127.0.0.1:65535/")
    screen.on_sample(0.0, (0.6, 0.6))
    assert len(console.export_text().splitlines()) == 4 + 2 + 1


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
    with started(tmp_path, "--for", "2s", "--json", "--seed", "5", pages=PAGES) as demo:
        out, err = demo.communicate(timeout=120)
        assert demo.returncode == 0, err
    found = json.loads(out)
    assert found["theory"]["optimum"] == pytest.approx(0.6162, abs=1e-4)
    for copy in ("uniform", "afresh"):
        assert 0.3 < found[copy]["freshness"] < 0.8
        assert 0 < found[copy]["requests"] <= found["budget"] * 1.1 + 64  # those under way at the edges
    assert re.search(r"http://127\.0\.0\.1:\d+/", err)
    assert re.search(r"day +\d+ +uniform 0\.\d+ +afresh 0\.\d+", err)
    assert "afresh add --discover" in err
    assert left_behind(tmp_path) == []


def test_a_request_that_fails_once_does_not_hold_up_the_start(tmp_path: Path) -> None:
    """A minute's wait for one page, as on the web, would stop everything: all pages must be there first."""
    asked, again = 0, threading.Event()

    async def fails_once(_seen: Seen, answer: Answer) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            await answer.raw(b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nhalf")
            answer.hang_up()
            return
        await answer.send(b"there")
        again.set()

    with served({"/robots.txt": page(b""), "/page/0": fails_once}) as site:
        urls = [f"{site.url}/page/0"]
        with RunningCopy(tmp_path / "copy", "uniform", urls, budget_per_s=100.0, web=False) as copy:
            assert again.wait(20.0)
            copy.stop()


@pytest.mark.parametrize("number", with_slow_cases([signal.SIGINT, signal.SIGTERM], kept=1))
def test_stopped_the_demo_ends_its_copies_and_clears_up(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path, "--for", "10m") as demo:
        shows_its_dashboard(demo)
        assert len(left_behind(tmp_path)) == 4  # the folder, the demo and two copies at work
        demo.send_signal(number)
        _, err = demo.communicate(timeout=30)
        assert demo.returncode == 128 + number, err
        assert re.fullmatch(r"(day .*\n)*afresh: stopped (at once )?by " + number.name + r"\n", err)
        assert left_behind(tmp_path) == []


def test_the_copies_of_a_demo_that_is_killed_end_with_it(tmp_path: Path) -> None:
    with started(tmp_path, "--for", "10m") as demo:
        shows_its_dashboard(demo)
        demo.kill()
        demo.wait()
        pause = threading.Event()
        for _ in range(600):
            if not processes_of(tmp_path):
                break
            pause.wait(0.05)
        assert processes_of(tmp_path) == []

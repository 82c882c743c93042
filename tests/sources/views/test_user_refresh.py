"""Views that a command or function refreshes, and whose staleness a query or function states."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.sources.polling import make_source
from tests.sources.rebuilding import RebuiltViews
from tests.waiting import until

from afresh.sources.context import SourceContext
from afresh.values.errors import UsageError

CHAIN = {"a": ["t"], "b": ["a"], "c": ["b", "u"]}


@pytest.fixture
def jobs() -> Iterator[ModuleType]:
    """A module of the user."""
    module: Any = ModuleType("jobs_of_tests")
    module.stale, module.built = set(), []
    module.is_stale = lambda view: view in module.stale
    module.rebuild = module.built.append
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


def test_a_function_states_what_is_stale_and_views_above_follow(tmp_path: Path, jobs: Any) -> None:
    views = RebuiltViews(tmp_path, depends_on=CHAIN, stale_when={"a": "jobs_of_tests:is_stale"})

    async def work() -> None:
        views.table["stale_when"] = "jobs_of_tests:is_stale"
        views.source = views.make()
        jobs.stale = {"a", "b", "c"}
        await views.look()
        await views.poll("c")
        jobs.stale = set()
        assert views.built() == ["a", "b", "c"]
        await views.look()
        assert views.stale() == set()
        jobs.stale = {"a"}
        await views.look()
        assert views.stale() == {"a"}  # of the others it was stated that they are fresh
        jobs.stale = {"a", "b"}
        await views.look()
        await views.poll("b")
        assert views.built() == ["a", "b"]
        await views.look()
        assert views.stale() == {"a", "b"}  # still stated: what they lack came during the refresh
        jobs.stale = set()
        await views.look()
        assert views.stale() == set()  # another program has refreshed them

    views.use(work)


def test_only_the_lowest_view_is_asked_and_those_above_it_follow(tmp_path: Path, jobs: Any) -> None:
    chain = {"a": ["t"], "b": ["a"]}
    views = RebuiltViews(tmp_path, depends_on=chain, stale_when={"a": "jobs_of_tests:is_stale"})

    async def work() -> None:
        await views.poll("b")
        await views.look()
        assert views.stale() == set()
        jobs.stale = {"a"}
        await views.look()
        assert views.stale() == {"a", "b"}
        reports = views.source.staleness_reports()
        assert (reports["b"].below, reports["b"].known) == (("a",), True)

    views.use(work)


def test_rates_are_learned_from_statements(tmp_path: Path, jobs: Any) -> None:
    views = RebuiltViews(tmp_path, views=["a"], stale_when="jobs_of_tests:is_stale")

    async def work() -> None:
        for _ in range(40):  # stale at every other reading, ten seconds apart
            jobs.stale = {"a"}
            await views.look(10.0)
            await views.poll("a")
            jobs.stale = set()
            await views.look(10.0)
        report = views.source.staleness_reports()["a"]
        assert report.rate_per_s == pytest.approx(math.log(2) / 10, rel=0.2)

    views.use(work)


def test_a_function_refreshes(tmp_path: Path, jobs: Any) -> None:
    views = RebuiltViews(tmp_path, depends_on=CHAIN, refresh="jobs_of_tests:rebuild")

    async def work() -> None:
        assert (await views.poll("b")).kind == "content"
        assert jobs.built == ["a", "b"]

    views.use(work)


def test_a_function_that_hangs_is_not_called_again_meanwhile(tmp_path: Path, jobs: Any) -> None:
    go_on = threading.Event()
    jobs.rebuild = lambda _view: go_on.wait(60)
    views = RebuiltViews(tmp_path, views=["a", "b"], refresh="jobs_of_tests:rebuild", timeout="0.05s")

    async def work() -> None:
        found = await views.poll("a")
        assert found.problem == "took longer than its time-out allows (0.05 s)"
        assert views.source.ready_s("house", views.clock.now_s()) == float("inf")
        go_on.set()

    views.use(work)


def test_a_command_that_takes_too_long_ends_with_its_process_group(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    then = f"trap 'echo ended >> {pids}' TERM; sleep 600 & echo $! >> {pids}; echo $$ >> {pids}; wait; wait"
    views = RebuiltViews(tmp_path, then, views=["a"], timeout="1s")

    async def work() -> None:
        found = await views.poll("a")
        assert (found.kind, found.problem) == ("failed", "took longer than its time-out allows (1 s)")

    views.use(work)
    *running, said = pids.read_text().split()
    assert said == "ended"  # it was asked to end before it was killed
    for pid in running:
        until(lambda pid=pid: is_gone(int(pid)), "the group has ended")  # type: ignore[misc]


def test_a_command_that_fails_is_quoted_and_views_above_it_are_not_built(tmp_path: Path) -> None:
    then = 'test "$1" != a || { echo "Compilation Error in model a"; exit 2; }'
    views = RebuiltViews(tmp_path, then, depends_on=CHAIN)

    async def work() -> None:
        found = await views.poll("c")
        assert (found.kind, found.problem) == ("failed", "sh ended with 2: Compilation Error in model a")
        assert views.built() == ["a"]

    views.use(work)


def test_a_view_is_one_argument_without_a_shell(tmp_path: Path) -> None:
    name = "a b; touch $(c) {view}"
    views = RebuiltViews(tmp_path, views=[name])

    async def work() -> None:
        assert (await views.poll(name)).kind == "content"
        assert views.log.read_text() == name + "\n"

    views.use(work)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"refresh": []}, "refresh: empty"),
        ({"refresh": "make {view}"}, "refresh: 'make {view}' is neither"),
        ({"refresh": "no_such_module:f"}, "refresh 'no_such_module:f' cannot be found"),
        ({"stale_when": "no_such_module:f"}, "stale_when 'no_such_module:f' cannot be found"),
        ({"stale_when": "SELECT 1"}, "stale_when: a query needs url"),
        ({"stale_when": {"z": "m:f"}}, "stale_when: 'z' is no view of this source"),
        ({"depends_on": {"a": ["b"], "b": ["a"]}}, "in a circle: a → b → a"),
        ({"depends_on": {}}, "url: needed, or name the views"),
        ({"refresh": None}, "refresh: needed: only PostgreSQL"),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, Any], words: str) -> None:
    table = {"name": "v", "kind": "view", "refresh": ["true"], "depends_on": {"a": ["t"]}} | changes
    with pytest.raises(UsageError) as caught:
        make_source(table, SourceContext())
    assert words in str(caught.value)


def test_statements_that_are_no_truth_are_refused(tmp_path: Path, jobs: Any) -> None:
    views = RebuiltViews(tmp_path, views=["a"], stale_when="jobs_of_tests:is_stale")

    async def work() -> None:
        jobs.is_stale = lambda _view: "perhaps"
        views.source = views.make()
        assert (await views.look()).problem == "stale_when: gives 'perhaps', which is neither true nor false"

    views.use(work)


def test_a_target_lag_that_fits_no_view_is_reported_once(tmp_path: Path) -> None:
    views = RebuiltViews(tmp_path, depends_on=CHAIN, target_lags={"a": "5m", "dayly": "1h"})

    async def work() -> None:
        problems = [(await views.look()).problem for _ in range(3)]
        assert problems.count("target_lags: no view is named like dayly") == 1

    views.use(work)

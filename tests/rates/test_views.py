"""Views: distinct bases at any depth, circles named, and no blow-up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.rates import views as views_module
from afresh.rates.views import ViewGraph
from afresh.values.errors import InputError

# A graph by numbers: view i may stand on earlier views and on bases.
GRAPHS = st.lists(
    st.tuples(st.lists(st.integers(0, 30), max_size=3), st.lists(st.integers(0, 11), min_size=1, max_size=4)),
    min_size=1,
    max_size=25,
)


def edges_of(graph: list[tuple[list[int], list[int]]]) -> tuple[list[str], list[str]]:
    pairs = []
    for at, (below, bases) in enumerate(graph):
        pairs += [(f"v{at}", f"v{other % at}") for other in below if at]
        pairs += [(f"v{at}", f"b{base}") for base in bases]
    return [view for view, _ in pairs], [base for _, base in pairs]


def bases_by_recursion(name: str, view: list[str], base: list[str]) -> set[str]:
    parts = [part for whole, part in zip(view, base, strict=True) if whole == name]
    return set().union(*(bases_by_recursion(part, view, base) for part in parts)) if parts else {name}


def test_zhang_figure_3() -> None:
    """Four views over R, S, T, U, Q; the paper says of V1 that it uses R and S."""
    view = ["V1", "V1", "V2", "V2", "V3", "V3", "V3", "V4", "V4"]
    base = ["R", "S", "S", "T", "V1", "V2", "U", "U", "Q"]
    graph = ViewGraph.of(view, base)
    rates = graph.rates({"R": 1, "S": 2, "T": 4, "U": 8, "Q": 16})
    assert dict(zip(graph.views, rates.tolist(), strict=True)) == {"V1": 3, "V2": 6, "V3": 15, "V4": 24}


@settings(deadline=None)
@given(graph=GRAPHS, block=st.sampled_from([8, 4096]), seed=st.integers(0, 2**32 - 1))
def test_rates_follow_the_definition(graph: list[tuple[list[int], list[int]]], block: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    view, base = edges_of(graph)
    shuffled = rng.permutation(len(view))
    view, base = [view[i] for i in shuffled], [base[i] for i in shuffled]
    rate = {f"b{i}": float(rng.gamma(0.3)) for i in range(12)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(views_module, "_BLOCK", block)
        found = ViewGraph.of(view, base)
        rates = found.rates(rate)
    for at, name in enumerate(found.views):
        below = bases_by_recursion(name, view, base)
        assert rates[at] == pytest.approx(sum(rate[b] for b in below), rel=1e-12)


def test_order_of_pairs_and_repeats_do_not_matter() -> None:
    view, base = ["B", "A", "A", "A"], ["A", "x", "y", "x"]
    one = ViewGraph.of(view, base)
    other = ViewGraph.of(view[::-1], base[::-1])
    assert one.rates({"x": 1, "y": 2}).tolist() == [3, 3]
    assert dict(zip(one.views, one.parts, strict=True)).keys() == set(other.views)
    assert other.rates({"x": 1, "y": 2}).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("view", "base", "circle"),
    [
        (["A"], ["A"], "A → A"),
        (["A", "B", "B"], ["B", "A", "x"], "A → B → A"),
        (["T", "A", "B", "C"], ["A", "B", "C", "A"], "A → B → C → A"),
    ],
)
def test_a_circle_is_named(view: list[str], base: list[str], circle: str) -> None:
    with pytest.raises(InputError, match="in a circle: ") as error:
        ViewGraph.of(view, base)
    assert str(error.value).endswith(f": {circle}")


def test_a_long_circle_is_named_in_short() -> None:
    with pytest.raises(InputError) as error:
        ViewGraph.of([f"v{i}" for i in range(5000)], [f"v{(i + 1) % 5000}" for i in range(5000)])
    assert len(str(error.value)) < 200
    assert "4990 more" in str(error.value)


def test_unknown_bases_and_uneven_columns_are_refused() -> None:
    with pytest.raises(
        InputError, match="'priecs', which is neither an item nor a view: did you mean 'prices'"
    ):
        ViewGraph.of(["V"], ["priecs"]).rates({"prices": 1.0})
    with pytest.raises(InputError, match="2 views and 1 bases"):
        ViewGraph.of(["V", "V"], ["R"])
    with pytest.raises(InputError, match="must be a number of 0 or more"):
        ViewGraph.of(["V"], ["R"]).rates({"R": -1.0})


def test_a_view_listed_among_the_items_keeps_its_own_sum() -> None:
    rates = ViewGraph.of(["V"], ["R"]).rates({"R": 2.0, "V": 99.0})
    assert rates.tolist() == [2.0]


def test_no_views_at_all() -> None:
    graph = ViewGraph.of([], [])
    assert graph.views == ()
    assert graph.rates({"R": 1.0}).size == 0


def test_a_diamond_ladder_does_not_blow_up() -> None:
    """2^n ways lead down a ladder of n diamonds; each base still counts once, and the test ends."""
    view, base = ["v0"], ["b0"]
    for at in range(1, 3000):
        view += [f"l{at}", f"r{at}", f"v{at}", f"v{at}", f"v{at}"]
        base += [f"v{at - 1}", f"v{at - 1}", f"l{at}", f"r{at}", f"b{at}"]
    graph = ViewGraph.of(view, base)
    rates = graph.rates({f"b{i}": 1.0 for i in range(3000)})
    assert rates[graph.views.index("v2999")] == 3000

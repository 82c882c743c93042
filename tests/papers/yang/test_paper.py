"""Yang et al. 2010: the report, and its figures on made-up records."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.papers.report import CheckVerdict
from afresh.papers.yang import content_lag, report
from afresh.papers.yang.probe_experiments import SearchRecords, figures


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_the_curves_does_not_hang_on_the_seed(seed: int) -> None:
    means = content_lag.mean_lags(content_lag.simulate_courses(seed))
    assert means["ours"] < means["Greedy"] < 0.1 * means["Naive 1"] < 0.1 * means["Naive 2"]


def test_levels_differ_for_a_known_reason_and_all_else_agrees() -> None:
    found = report()
    assert found.count(CheckVerdict.UNEXPLAINED) == 0
    assert found.count(CheckVerdict.DIFFERS) == 2
    assert [figure.name for figure in found.figures] == ["Figure 2"]


def made_papers() -> SearchRecords:
    rng = np.random.default_rng(5)
    topics = ("summarization", "coreference", "sentiment", "parsing", "dialogue")
    titles = [
        " ".join([*(f"w{word}" for word in rng.integers(40, size=4)), *rng.choice(topics, rng.integers(2))])
        for _ in range(150)
    ]
    authors = [";".join(f"a{name}" for name in rng.integers(60, size=2)) for _ in titles]
    return SearchRecords("made", "papers", {"title": titles, "authors": authors})


def test_figures_of_papers_show_coverage_speedup_and_growth() -> None:
    topics, circle = figures(made_papers())
    assert (topics.name, circle.name) == ("Figure 3, made", "Figure 4, made")
    for figure in (topics, circle):
        coverage, speedup, growth = figure.panels
        by_name = {series.label: series for series in speedup.series}
        ours = by_name.pop("ours, all attributes").y
        whole = [series.y for label, series in by_name.items() if label.startswith("Method 1")]
        assert all((ours >= line).all() for line in whole)
        for series in coverage.series:
            if series.label.startswith("Method 1"):
                assert (series.y >= 1 - 1e-9).all()
        assert (np.diff(growth.series[0].y) >= 0).all()


def test_the_figure_of_films() -> None:
    rng = np.random.default_rng(6)
    texts = {
        "title": [f"film {word} {other}" for word, other in rng.integers(50, size=(100, 2))],
        "director": [f"d{name}" for name in rng.integers(40, size=100)],
        "cast": [";".join(f"c{name}" for name in rng.integers(80, size=3)) for _ in range(100)],
    }
    (figure,) = figures(SearchRecords("shop", "movies", texts))
    assert figure.name == "Figure 5, shop"
    assert len(figure.panels[0].series) == 6

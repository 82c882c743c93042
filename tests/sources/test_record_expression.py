"""Weights and expected rates that are computed from records: what is allowed, and what follows from it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from tests.sources.searching import World, make_world, search_table

from afresh.probes.dissimilarity import unequal
from afresh.sources.context import SourceContext
from afresh.sources.record_expression import RecordExpression
from afresh.sources.search.record_tracker import RecordTracker
from afresh.sources.search.relation import LocalRelation, read_relation
from afresh.sources.search.settings import SearchSettings
from afresh.sources.search.source import SearchSource
from afresh.sources.settings import read_settings
from afresh.values.errors import InputError, UsageError

YEAR_S = 31557600.0


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Papers with a price, a stock and citations; the third paper has no citations stated."""
    found = make_world(tmp_path, count=200, own=20)
    lines = found.relation.read_text().splitlines()
    more = ["price,list-price,cites", "10,5,8", "20,2,4", "1.5,0,", *["1,1,0"] * (len(lines) - 4)]
    found.relation.write_text("\n".join(f"{a},{b}" for a, b in zip(lines, more, strict=True)) + "\n")
    return found


def relation_of(world: World, weight: str = "", rate: str = "") -> LocalRelation:
    table = search_table(world, None, server="all.csv", weight=weight, rate=rate)
    settings = read_settings(SearchSettings, table)
    return read_relation(
        settings.relation,
        settings.key,
        settings.attributes,
        settings.weight_expression,
        settings.rate_expression,
        scoped=True,
    )


def test_weights_and_rates_come_from_the_columns_of_a_record(world: World) -> None:
    plain = relation_of(world, "price")
    assert plain.weights[:4].tolist() == [10.0, 20.0, 1.5, 1.0]
    assert plain.rates is None
    found = relation_of(world, 'max(price * "list-price", 2 + 1) / 2', "cites / 4 / y")
    assert found.weights[:4].tolist() == [25.0, 20.0, 1.5, 1.5]
    assert found.rates is not None
    np.testing.assert_allclose(found.rates[:4] * YEAR_S, [2.0, 1.0, np.nan, 0.0])
    entries = found.entries()
    assert [entry.prior_rate_per_s is None for entry in entries[:4]] == [False, False, True, True]
    assert entries[0].key == world.keys[0]
    assert entries[0].prior_rate_per_s == pytest.approx(2.0 / YEAR_S)


def test_the_source_lists_its_records_with_their_expected_rates(world: World) -> None:
    async def work() -> list[float | None]:
        settings = read_settings(
            SearchSettings, search_table(world, None, server=str(world.relation), rate="cites / d", fields={})
        )
        source = SearchSource(settings, SourceContext())
        (listing,) = [listing async for listing in source.listings()]
        await source.close()
        return [entry.prior_rate_per_s for entry in listing.entries]

    assert asyncio.run(work())[:3] == [8 / 86400.0, 4 / 86400.0, None]


@pytest.mark.parametrize(
    ("setting", "text", "words"),
    [
        ("rate", "cites / 4", "is no rate: divide by a unit of time"),
        ("rate", "cites", "is no rate"),
        ("rate", "d / cites", "is no rate"),
        ("rate", "cites / d + 1", "adds a number and a time"),
        ("rate", "3 / d", "names no column"),
        ("rate", "sqrt(cites / d)", "numbers of different units"),
        ("weight", "price *", "cannot be read"),
        ("weight", "price ** 2", "something that is not allowed"),
        ("weight", "open('x')", "something that is not allowed"),
        ("weight", "price.real + 1", "something that is not allowed"),
        ("weight", "(lambda: 1)()", "something that is not allowed"),
        ("weight", "sqrt(price, price)", "more than one number"),
        ("weight", "True * price", "is no number"),
        ("weight", "price * 1e999", "something that is not allowed"),
        ("weight", "(" * 150 + "price", "cannot be read"),
        ("weight", "price + " * 40 + "1", "at most 200 characters"),
    ],
)
def test_a_wrong_expression_is_refused_when_settings_are_read(
    world: World, setting: str, text: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        read_settings(SearchSettings, search_table(world, None, server="all.csv", **{setting: text}))


@pytest.mark.parametrize(
    ("setting", "text", "words"),
    [
        ("weight", "title", r"row 1, column title: is '.*': a weight is a number of 0 or more"),
        ("weight", "price - 15", r"row 1, column price: is '10': a weight is a number of 0 or more"),
        ("weight", 'price / "list-price"', r"row 3: weight = .* is inf: it must be a number of 0 or more"),
        ("rate", "price / h / 'list-price'", r"row 3: rate = .* is inf"),
        ("rate", "pages / h", "has no column pages"),
    ],
)
def test_a_record_of_which_it_cannot_be_computed_is_named(
    world: World, setting: str, text: str, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        relation_of(world, **{setting: text})


def test_a_record_with_an_empty_cell_has_the_weight_one(world: World) -> None:
    assert relation_of(world, "cites + 5").weights[:4].tolist() == [13.0, 9.0, 1.0, 5.0]


def test_expected_rates_rank_records_until_their_changes_are_known(world: World) -> None:
    relation = relation_of(world, rate="(cites + 1) / y")
    tracker = RecordTracker(relation, {"n": unequal}, relation.rates)
    drift = tracker.drift()
    assert drift[0] / drift[1] == pytest.approx(9 / 5)
    assert drift[2] == 1.0  # nothing is expected of it: as of the mean
    # The first is expected to change most often, but it is the fourth that changes at each look.
    for look in range(60):
        for row in range(len(relation.keys)):
            tracker.record(row, {"n": look if row == 3 else 0}, 100.0 * look)
    drift = tracker.drift()
    assert drift.argmax() == 3
    assert drift[3] > 20 * drift[0] > 20 * drift[1]


def test_an_expression_of_one_column_keeps_its_name() -> None:
    assert RecordExpression.parse("weight", "my column").columns == ("my column",)
    assert RecordExpression.parse("weight", "'my-column'").columns == ("my-column",)

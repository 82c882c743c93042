"""Parsers of untrusted bytes are judged by processor time and memory, on inputs made to cost much of both."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.parsing.attacks import PARSERS, UNITS, found_in_the_wild, peak_memory_kb
from tests.sources.parsing.beside import PARSERS_BESIDE, peak_memory_beside_kb

from afresh.sources.parsing.parse_budget import SMALL_BYTES, ParseBudgetError, budget_for_size
from afresh.sources.parsing.parser_pool import ParserPool

# The worst small inputs known take 20 MB.
MOST_MEMORY_KB = 150_000
MOST_CHILD_MEMORY_KB = 400_000
# With 0, empty inputs would be parsed in this process, and its own peak of memory would be judged.
_NONE_HERE = -1

# A few pieces, each repeated up to filling the whole input.
attacks = st.lists(
    st.tuples(
        st.lists(st.sampled_from(UNITS), min_size=1, max_size=3).map(b"".join), st.integers(1, SMALL_BYTES)
    ),
    min_size=1,
    max_size=4,
).map(lambda pieces: b"".join((unit * (size // len(unit) + 1))[:size] for unit, size in pieces)[:SMALL_BYTES])


@cache
def most_s() -> float:
    """Half of the processor time that Python takes on this machine to look at each pair of an input's bytes.

    C code does most of the parsers' work, so that its steps cannot be counted. The worst small inputs known
    take a fifth of this limit, on a machine of any speed.
    """
    some = bytes(SMALL_BYTES // 8)
    start_s = time.process_time()
    for _ in range(2):
        assert not any(one != other for one in some for other in some)
    return (time.process_time() - start_s) / 2 * 8**2 / 2


def judge(parser: str, data: bytes) -> None:
    """Parse an input that stays in the process; fail if it takes too much."""
    most = most_s()
    PARSERS[parser](b"")  # imports what it needs
    memory_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start_s = time.process_time()
    PARSERS[parser](data)
    assert time.process_time() - start_s < most
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_kb < MOST_MEMORY_KB


@pytest.mark.parametrize("parser", PARSERS)
def test_known_attacks_that_are_small_cost_little(parser: str) -> None:
    for data in found_in_the_wild(SMALL_BYTES):
        judge(parser, data[:SMALL_BYTES])


@pytest.mark.parametrize("parser", PARSERS)
@given(data=attacks)
@settings(max_examples=12)
def test_attacks_that_are_small_cost_little(parser: str, data: bytes) -> None:
    judge(parser, data)


@pytest.mark.slow
@pytest.mark.parametrize("parser", PARSERS)
@given(data=attacks | st.binary(max_size=SMALL_BYTES))
@settings(max_examples=3_000, derandomize=False)
def test_many_attacks_that_are_small_cost_little(parser: str, data: bytes) -> None:
    judge(parser, data)


@pytest.fixture(scope="module")
def pool() -> Iterator[ParserPool]:
    """Parser processes that give up soon."""
    with ParserPool(1, lambda size: replace(budget_for_size(size), processor_s=2.0)).joined() as made:
        yield made


def judge_beside(pool: ParserPool, parser: str, data: bytes) -> None:
    with suppress(ParseBudgetError):
        assert pool.parse_here(peak_memory_beside_kb, data, parser, small=_NONE_HERE) < MOST_CHILD_MEMORY_KB


@pytest.mark.parametrize("parser", PARSERS_BESIDE)
def test_attacks_on_parsers_that_never_run_here_keep_to_their_budget(parser: str, pool: ParserPool) -> None:
    attacked = attacks.filter(lambda data: len(data) > 100)

    @given(data=attacked)
    @settings(max_examples=4)
    def attack(data: bytes) -> None:
        judge_beside(pool, parser, data)

    attack()


@pytest.mark.slow
@pytest.mark.parametrize("parser", PARSERS_BESIDE)
def test_many_attacks_on_parsers_that_never_run_here_keep_to_their_budget(
    parser: str, pool: ParserPool
) -> None:
    for data in found_in_the_wild(1_000_000):
        judge_beside(pool, parser, data)

    @given(data=attacks | st.binary(max_size=SMALL_BYTES))
    @settings(max_examples=100, derandomize=False)
    def attack(data: bytes) -> None:
        judge_beside(pool, parser, data)

    attack()


@pytest.mark.slow
@pytest.mark.parametrize("parser", PARSERS)
def test_known_attacks_that_are_large_keep_to_their_budget(parser: str) -> None:
    with ParserPool().joined() as pool:
        for data in found_in_the_wild(1_000_000):
            with suppress(ParseBudgetError):
                assert pool.parse_here(peak_memory_kb, data, parser, small=_NONE_HERE) < MOST_CHILD_MEMORY_KB

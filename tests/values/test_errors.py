"""The tree of errors, their exit codes and their texts."""

from __future__ import annotations

import pytest

from afresh.values.errors import (
    AfreshError,
    InfeasibleError,
    InputError,
    OutputError,
    UsageError,
    one_of,
)


def test_the_tree_and_its_exit_codes() -> None:
    assert {error: error.exit_code for error in (UsageError, InputError, InfeasibleError, OutputError)} == {
        UsageError: 2,
        InputError: 1,
        InfeasibleError: 1,
        OutputError: 1,
    }
    assert issubclass(UsageError, ValueError)
    assert issubclass(InputError, ValueError)
    assert not issubclass(OutputError, ValueError)
    assert all(
        issubclass(error, AfreshError) for error in (UsageError, InputError, InfeasibleError, OutputError)
    )


def test_an_input_error_says_where() -> None:
    assert str(InputError("is wrong", path="a.csv", row=1, line=5, column="rate")) == (
        "a.csv, row 1 (line 5), column rate: is wrong"
    )
    assert str(InputError("is wrong", path="a.csv")) == "a.csv: is wrong"
    assert str(InputError("is wrong")) == "is wrong"


def test_an_unknown_name_far_from_all_gets_no_suggestion() -> None:
    with pytest.raises(UsageError, match=r"unknown order 'zzz'\. One of fixed, random"):
        one_of("order", "zzz", ["fixed", "random"])

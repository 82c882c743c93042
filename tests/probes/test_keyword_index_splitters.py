"""How texts are split into keywords."""

from __future__ import annotations

import pytest

from afresh.probes.keyword_index import ValueSplitter, WordSplitter, parse_keywords
from afresh.values.errors import UsageError


def test_words_and_values() -> None:
    assert list(WordSplitter().spellings("Über die Über-Suche: it IS the e-mail")) == [
        "über",
        "die",
        "suche",
        "e",
        "mail",
    ]
    assert list(ValueSplitter("|").spellings(" A  b |a b|| c")) == ["a b", "c"]


@pytest.mark.parametrize("wrong", ["", ":;", "title:"])
def test_a_wrong_column_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="give a column"):
        parse_keywords(wrong)

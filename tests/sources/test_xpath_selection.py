"""XPath expressions select and drop parts of pages, as CSS selectors do."""

from __future__ import annotations

import pytest

from afresh.sources.change_detection import Recipe, normalise
from afresh.values.errors import UsageError

PAGE = (
    '<html><head><meta charset="latin-1"></head><body><div id="shop"><p class="name">Tea é</p>'
    '<p class="price">3 <b>EUR</b></p></div><p class="price">9 EUR</p><footer>12:31</footer></body></html>'
)


def normal(**recipe: object) -> str:
    return normalise(PAGE.encode(), "text/html; charset=utf-8", Recipe(**recipe)).decode()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("css", "xpath"),
    [
        ("#shop > .price", "//div[@id='shop']/p[@class='price']"),
        (".price", "xpath://p[@class='price']"),
        (".nothing", "//p[@class='nothing']"),
    ],
)
def test_both_languages_select_the_same(css: str, xpath: str) -> None:
    assert normal(selectors=(css,)) == normal(selectors=(xpath,))
    assert normal(selectors=(css,), text_only=True) == normal(selectors=(xpath,), text_only=True)
    assert normal(drop=(css,), text_only=True) == normal(drop=(xpath,), text_only=True)


def test_values_and_texts_are_results_too() -> None:
    assert normal(selectors=("xpath:count(//p)",)) == "3"
    assert normal(selectors=("//p[1]/text()",), text_only=True).startswith("Tea é")
    assert normal(selectors=("//p/@class",), text_only=True) == "name price price"


def test_both_languages_work_in_one_recipe() -> None:
    mixed = normal(selectors=("//div/p[2]", "footer"), drop=("b",), text_only=True)
    assert mixed == "3 12:31"


@pytest.mark.parametrize("wrong", ["//p[", "xpath:", "(//p", "xpath:nonsense(//p)"])
def test_a_malformed_expression_is_refused_by_name(wrong: str) -> None:
    with pytest.raises(UsageError, match=r"selectors: .* is not an XPath expression"):
        Recipe(selectors=(wrong,))

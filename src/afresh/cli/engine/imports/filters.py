"""Which part of a page the filters of another program compare, as a selector of ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from afresh.sources.change_detection import Recipe
from afresh.sources.xpath_selection import is_xpath
from afresh.values.errors import UsageError

_XPATH = ("xpath1:", "xpath:")


def choose_selector(filters: Iterable[object]) -> tuple[str, Sequence[str]]:
    """Return a tuple: the selector of these filters, and the filters that are not in it. CSS selectors come
    before XPath expressions, because one selector is of one kind.

    >>> choose_selector(["#price", "h1", "xpath://b"])
    ('#price, h1', ['xpath://b'])
    >>> choose_selector(["xpath://b", "//i", "json:$.price"])
    ('(//b)|(//i)', ['json:$.price'])
    """
    texts = [text.strip() for text in filters if isinstance(text, str) and text.strip()]
    css, paths = list[str](), list[str]()
    for text in texts:
        bare = next((text.removeprefix(name) for name in _XPATH if text.startswith(name)), text)
        if _is_selector(bare):
            (paths if is_xpath(bare) or bare != text else css).append(text)
    used = css or paths
    bare_paths = [path.partition(":")[2] if path.startswith(_XPATH) else path for path in paths]
    joined = "|".join(f"({path})" for path in bare_paths) if len(paths) > 1 else "".join(bare_paths)
    if joined and not is_xpath(joined):
        joined = f"xpath:{joined}"
    return ", ".join(css) if css else joined, [text for text in texts if text not in used]


def _is_selector(text: str) -> bool:
    if text.startswith(("json:", "jq:", "jqraw:", "re:")):
        return False
    try:
        Recipe().for_item(text)
    except UsageError:
        return False
    return True

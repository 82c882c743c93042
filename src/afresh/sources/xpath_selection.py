"""XPath expressions beside CSS selectors: ``//main/p``, ``(//table)[1]`` or ``xpath:id('price')``.

An expression begins with "/", "(" or "xpath:", with which no CSS selector begins. Its results are elements,
which count with their tags, or texts and numbers, as in ``//a/@href`` or ``count(//li)``. lxml evaluates
XPath; it comes with the extra ``text``. Expressions come from the user, pages from anybody: evaluate them
only in a parser process, because an expression may take the square of the size of a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from afresh.values.errors import UsageError

_PREFIX = "xpath:"
_REMEDY = "XPath selectors need lxml: pip install 'afresh[text]'"


def is_xpath(selector: str) -> bool:
    """Return whether a selector is an XPath expression, and not a CSS selector.

    >>> is_xpath("//p[@class='price']"), is_xpath("xpath:string(//p)"), is_xpath("main > p")
    (True, True, False)
    """
    return selector.startswith(("/", "(", _PREFIX))


@lru_cache(maxsize=1024)
def compile_xpath(setting: str, selector: str) -> Any:
    """Return the compiled expression. Raise ``UsageError``, which names ``setting``, if it is malformed."""
    try:
        from lxml import etree  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError(f"{setting}: {selector!r}: {_REMEDY}") from None
    try:
        # Without regular expressions, which may take exponential time.
        compiled = etree.XPath(selector.removeprefix(_PREFIX).strip(), regexp=False)
        compiled(_parse("<p></p>"))  # an unknown function is found only when it is called
    except etree.XPathError as error:
        raise UsageError(f"{setting}: {selector!r} is not an XPath expression: {error}") from None
    return compiled


def select_parts(page: str, selectors: Sequence[str]) -> list[str]:
    """Return what each expression finds in an HTML page: elements as HTML, other results as escaped text.

    >>> select_parts("<p id=a>1 &lt; 2</p><p>3</p>", ["//p[2]", "count(//p)", "//p[1]/text()"])
    ['<p>3</p>', '2', '1 &lt; 2']
    """
    tree = _parse(page)
    found: list[str] = []
    for selector in selectors:
        found += [_as_html(result) for result in _evaluate(tree, selector)]
    return found


def drop_parts(page: str, selectors: Iterable[str]) -> str:
    """Return an HTML page without the elements that the expressions find. The text after them stays.

    >>> drop_parts("<div><p>a</p>b</div>", ["//p"])
    '<html><body><div>b</div></body></html>'
    """
    from lxml import etree, html

    tree = _parse(page)
    for selector in selectors:
        for result in _evaluate(tree, selector):
            if isinstance(result, html.HtmlElement) and result.getparent() is not None:
                result.drop_tree()
    return str(etree.tostring(tree, encoding="unicode", method="html"))


def _parse(page: str) -> Any:
    from lxml import html

    parser = html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False)
    # Bytes, because lxml refuses text with an encoding declaration; an empty page has no tree.
    return html.document_fromstring(page.encode("utf-8", "replace") or b"<html></html>",
                                    parser=parser, ensure_head_body=False)  # fmt: skip


def _evaluate(tree: Any, selector: str) -> list[Any]:
    found = compile_xpath("selectors", selector)(tree)
    return found if isinstance(found, list) else [found]


def _as_html(result: Any) -> str:
    from html import escape

    from lxml import etree

    if isinstance(result, etree._Element):  # noqa: SLF001  (lxml has no other name for it)
        return str(etree.tostring(result, encoding="unicode", method="html", with_tail=False))
    if isinstance(result, float) and result.is_integer():
        result = int(result)
    return escape(str(result), quote=False)

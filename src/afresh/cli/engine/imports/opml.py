"""Lists of feeds (OPML), as feed readers export them."""

from __future__ import annotations

from afresh.cli.engine.imports.imported import ImportedList
from afresh.values.errors import InputError


def read_opml(content: bytes, name: str) -> ImportedList:
    """Read the feeds (``xmlUrl``) of all outlines; the pages that they list become items.

    >>> text = b'<opml><body><outline text="a"><outline xmlUrl="https://a.test/feed"/></outline></body></opml>'
    >>> read_opml(text, "feeds.opml").feeds
    ('https://a.test/feed',)
    """
    from xml.etree.ElementTree import ParseError

    from defusedxml.common import DefusedXmlException  # type: ignore[import-untyped]
    from defusedxml.ElementTree import fromstring  # type: ignore[import-untyped]

    try:
        root = fromstring(content, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise InputError(f"{name}: is not OPML: {error}") from None
    outlines = [one for one in root.iter() if one.tag.lower() == "outline"]
    feeds = [given for one in outlines if (given := one.get("xmlUrl") or one.get("xmlurl"))]
    if not feeds:
        raise InputError(f"{name}: has no outline with an xmlUrl, the address of a feed")
    return ImportedList(feeds=tuple(dict.fromkeys(feeds)))

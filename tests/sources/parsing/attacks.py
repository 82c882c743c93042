"""Inputs that cost a parser more than they cost their author, and the parsers that they are meant for."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.sources.parsing.small_texts import SMALL_TEXTS

from afresh.engine.receiving.webhooks import find_keys
from afresh.policy.families import families_of
from afresh.sources.change_detection import Recipe, normalise
from afresh.sources.http.decompression import BadEncodingError, Inflater, TooLargeError
from afresh.sources.http.follow.settings import FollowSettings
from afresh.sources.http.follow.site_page import SMALL_PAGE_BYTES, SiteRules, read_site_page
from afresh.sources.http.listings.feeds import SMALL_FEED_BYTES, read_feed
from afresh.sources.http.listings.reader import page_links
from afresh.sources.http.listings.sitemaps import read_sitemap
from afresh.sources.http.rendering.modes import needs_browser
from afresh.sources.http.robots import read_file
from afresh.sources.http.soft_errors import ReceivedPage, find_soft_error
from afresh.sources.linear_pattern import compile_pattern
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.similarity import sketch
from afresh.sources.web_api.answer_shape import AnswerShape
from afresh.sources.web_api.answers import SMALL_MARKED_UP_BYTES, read_list

HOME = "http://a.test/"
RECIPES = {
    "selectors": Recipe(selectors=("main", "div p", "p ~ a")),
    "text": Recipe(drop=("footer", "b"), text_only=True),
    "patterns": Recipe(ignore=(r"\d+ visitors online", r"(a+)+b", r"<[^>]*>"), ignore_blanks=True),
    "JSON path": Recipe(json_path="[].a"),
}


def robots(data: bytes) -> None:
    rules = read_file(data, {}, 0.0)
    rules.allows(HOME + data[-2_000:].decode("latin-1"), "afresh")
    rules.crawl_delay_s("afresh")


def decompression(data: bytes) -> None:
    inflater = Inflater("gzip", max_bytes=50_000_000, max_ratio=200.0)
    with suppress(BadEncodingError, TooLargeError):
        inflater.feed(data)


def webhook(data: bytes) -> None:
    with suppress(ValueError):
        find_keys(data, "*.[].a", "http://a.test/{}")


def families(data: bytes) -> None:
    families_of(data.decode("latin-1").splitlines())


def error_page(data: bytes) -> None:
    page = ReceivedPage(data, "text/html", HOME, HOME + "elsewhere", has_other_copy=True)
    find_soft_error(page, (compile_pattern("soft_errors", r"(\w+\s?)+: error"),))


def normalised(recipe: str) -> Callable[[bytes], None]:
    def work(data: bytes) -> None:
        with suppress(ParseBudgetError):  # the selected parts may contain each other
            normalise(data, "text/html; charset=utf-8", RECIPES[recipe])

    return work


SITE = SiteRules(FollowSettings(start=(HOME,)), {}, HOME)
MARKED_UP = {
    "html": AnswerShape(format="html", rows="*", key="@b", fields={"a": "* > b", "c": "a *"}),
    "xml": AnswerShape(format="xml", rows=".//*", key=".", fields={"a": ".//b", "c": "*/*"}),
}

PARSERS: Mapping[str, Callable[[bytes], Any]] = {
    "robots": robots,
    "sitemap": lambda data: read_sitemap(data, HOME),
    "feed": lambda data: read_feed(data[:SMALL_FEED_BYTES], HOME),
    "links": lambda data: page_links(data, "text/html", HOME),
    "followed page": lambda data: read_site_page(data[:SMALL_PAGE_BYTES], "text/html", HOME, SITE),
    "rendered page": lambda data: needs_browser(data, data[::-1]),
    "webhook": webhook,
    "sketch": sketch,
    "decompression": decompression,
    "families": families,
    "error page": error_page,
    "API JSON": lambda data: read_list(
        data, "application/json", AnswerShape(rows="*[].*", key="*", where="a")
    ),
    "API HTML": lambda data: read_list(data[:SMALL_MARKED_UP_BYTES], "text/html", MARKED_UP["html"]),
    "API XML": lambda data: read_list(data[:SMALL_MARKED_UP_BYTES], "text/xml", MARKED_UP["xml"]),
    **{recipe: normalised(recipe) for recipe in RECIPES},
    **SMALL_TEXTS,
}

# What the inputs of attackers repeat.
UNITS = [
    *(
        b"<div>",
        b"<main>",
        b"<b><p>",
        b"<table><td>",
        b"<svg><g>",
        b"<a b=c ",
        b"<font size=1>",
        b"</div>",
        b"<!--",
    ),
    *(b"<title>", b"<link rel=alternate href=x>", b"<ul><li>", b"<select><option>", b"<template>", b"<nobr>"),
    *(
        b"<rss version='2.0'><channel>",
        b"<item><link>x</link>",
        b"<entry><title>",
        b"<![CDATA[",
        b"<a xmlns:b='c'>",
    ),
    *(
        b"<urlset>",
        b"<url><loc>",
        b"</loc></url>",
        b"http://a.test/a\n",
        b"&amp;",
        b"&",
        b"<",
        b"<?x ",
        b"]]>",
    ),
    *(
        b"User-agent: *\n",
        b"User-agent: x\n",
        b"Disallow: /*a*b$\n",
        b"Disallow: /a\n",
        b"Sitemap: /s\n",
        b"#",
    ),
    *(
        b"[",
        b'{"a":',
        b"]",
        b"[],",
        b'"',
        b"9",
        b"1e9,",
        b"\\u0000",
        b"a",
        b"a ",
        b"A",
        b"Aa",
        b"-",
        b"/",
        b"\n",
    ),
    *(b"12 visitors online ", b"\xc3\xa9", b"\xff", b"\0", gzip.compress(b"x" * 1_000)),
    *(b"a: &a [*a]\n", b"- {<<: [*a, *a]}\n", b"- ", b"? ", b"!!", b"item,weight\n", b"a,1\n"),
    *(
        b"1 0 obj\n<< /Kids [1 0 R] >>\nendobj\n",
        b"stream\n",
        b"<<",
        b"(",
        b"%41",
        b"/..",
        b"/%2e",
        b"?a=",
        b"&token=",
    ),
    *(
        b"<x>; rel=next, ",
        b'"d";q=1;w=1, ',
        b"r=1;t=1,",
        b"t=1,v1=ab,",
        b"//u:p@",
        b"HTTP/1.1 200 OK\r\n\r\n",
    ),
    *(
        b"WARC/1.1\r\n",
        b"Content-Length: 1\r\n",
        b"PK\x03\x04",
        b"<outline xmlUrl='x'>",
        b"=?utf-8?q?a?=",
        b"\xe2\x80\xae",
    ),
]


def many_agents_and_rules(count: int) -> bytes:
    agents = "".join(f"User-agent: bot{number}\n" for number in range(count))
    return (
        agents + "User-agent: *\n" + "".join(f"Disallow: /{number}\n" for number in range(count))
    ).encode()


def long_keys(count: int, length: int) -> bytes:
    return "\n".join(f"{HOME}{'a-' * (length // 2)}{number}" for number in range(count)).encode()


def bomb_in_bomb() -> bytes:
    return gzip.compress(gzip.compress(b"http://a.test/1\n" * 500_000))


def deep_json(depth: int) -> bytes:
    return b"[" * depth + json.dumps({"a": 1}).encode() + b"]" * depth


def found_in_the_wild(size: int) -> list[bytes]:
    """Return the inputs with which version 0.1.0 was attacked, each of about ``size`` bytes."""
    return [
        many_agents_and_rules(size // 28),
        b"<main>" * (size // 6),
        b"<div>" * (size // 5),
        b"1" * size,
        b"a" * size,
        long_keys(max(1, size // 7_900), min(size, 7_900)),
        bomb_in_bomb()[:size],
        deep_json(size // 2),
        b'{"a": ' + b"9" * size + b"}",
    ]


def peak_memory_kb(data: bytes, parser: str) -> int:
    """Parse the data with one of the parsers; return the most memory that this process has used, in KB.

    Parser processes call it by its name. ``getrusage`` would not do: Linux hands the peak of a process on to
    the programs that it starts, so that a parser process would begin with that of pytest."""
    PARSERS[parser](data)
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))

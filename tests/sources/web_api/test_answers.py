"""Answers in JSON, HTML and XML are read by the places of the settings, hostile ones within limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web
from tests.servers.api_site import served_api
from tests.sources.web_api.asking import Asker, ask

from afresh.sources.web_api.answer_shape import AnswerShape
from afresh.sources.web_api.answers import read_list, read_record
from afresh.sources.web_api.records_answer import RecordsAnswer
from afresh.values.errors import UsageError

PRODUCTS = b"""<p class=n>1-2 of 1.234 hits</p><ul><li class=p data-id=A7><b>Tea</b> <i>EUR 3.50</i></li>
<li class=p data-id=A8><b>Milk &amp; more</b> <i>sold out</i></li></ul><a rel=next href="?p=2">more</a>"""
FEED = b"""<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom" xmlns:x="http://x.test/">
<x:total>2</x:total><link rel="self" href="/1"/><link rel="next" href="/2"/>
<entry><id>urn:1</id><author><name>Ann</name></author><x:cites n="4"/></entry>
<entry><id>urn:2</id></entry></feed>"""


def test_rows_of_html_by_selectors() -> None:
    shape = AnswerShape(
        format="html",
        rows="li.p",
        total="p.n",
        total_pattern="of ([0-9.]+)",
        next="a[rel=next]@href",
        key="@data-id",
        fields={"name": "b", "price": "i", "colour": "u"},
        patterns={"price": "[0-9.]+"},
        where="price != null",
    )
    found = read_list(PRODUCTS, "text/html", shape)
    assert [(one.key, one.fields) for one in found.records] == [
        ("A7", {"name": "Tea", "price": "3.50", "colour": None})
    ]
    assert (found.total, found.next, found.left_out) == (1234, "?p=2", ("A8",))


def test_rows_of_xml_by_paths_of_elements() -> None:
    shape = AnswerShape(
        format="xml",
        rows="entry",
        total="total",
        next="link[@rel='next']@href",
        key="id",
        key_pattern="urn:(.*)",
        fields={"author": "author/name", "cites": "cites@n"},
        cursor="cites@n",
    )
    found = read_list(FEED, "application/atom+xml", shape)
    assert [(one.key, one.fields) for one in found.records] == [
        ("1", {"author": "Ann", "cites": "4"}),
        ("2", {"author": None, "cites": None}),
    ]
    assert (found.total, found.next, found.cursors) == (2, "/2", ("4", None))


@pytest.mark.parametrize(
    ("body", "shape", "words"),
    [
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", {"format": "xml"}, "not XML"),
        (b"<a>", {"format": "xml"}, "not XML"),
        (b"[" * 100_000, {}, "not JSON"),
        (b'{"a": 1}', {}, "rows: 'results' is no list in the answer, which has a"),
        (b'{"data": null, "errors": [{"message": "no such field"}]}', {}, "reports 'no such field'"),
        (b'{"results": [{}]}', {}, "key_path: id is no text or number in a row, which is empty"),
        (b'{"results": [{"id": "x"}]}', {"key_pattern": "[0-9]+"}, "the key 'x' does not match"),
        (b"<html>Log in", {}, "HTML instead of JSON"),
    ],
)
def test_an_answer_of_another_shape_is_described(body: bytes, shape: dict[str, Any], words: str) -> None:
    assert words in read_list(body, "", AnswerShape(**shape)).problem


def test_a_look_up_has_its_own_place_or_the_rows_or_is_the_record() -> None:
    row = {"id": 5, "n": 1}
    for body, place in [({"message": row}, "message"), ({"results": [row]}, ""), ([row], ""), (row, "")]:
        found = read_record(json.dumps(body).encode(), "", AnswerShape(record=place))
        assert [(one.key, one.fields) for one in found.records] == [("5", row)]
    for nothing in (b"", b"null", b"[]", b'{"results": []}'):
        assert read_record(nothing, "", AnswerShape()).records == ()
    assert read_record(b'{"message": null}', "", AnswerShape(record="message")).records == ()


def test_keys_are_mapped_by_case() -> None:
    found = read_list(b'{"results": [{"id": "10.1/AbC"}]}', "", AnswerShape(key_case="lower"))
    assert found.records[0].key == "10.1/abc"


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ({"rows": "a["}, "rows: 'a\\[' is not a JSON path"),
        ({"format": "html", "rows": "li >"}, "rows: 'li >' is not a CSS selector"),
        ({"format": "xml", "rows": "a["}, "rows: 'a\\[' is not a path of elements"),
        ({"key_pattern": "(?=a)"}, "key_pattern: .* look-ahead"),
        ({"patterns": {"n": "("}}, "patterns.n: "),
        ({"where": "a ="}, "where: 'a =' is not a JSON path"),
    ],
)
def test_a_wrong_place_is_refused_when_settings_are_read(shape: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        AnswerShape(**shape).check()


def test_rows_that_contain_each_other_are_refused_within_the_parse_budget() -> None:
    async def nested(_: web.Request) -> web.Response:
        return web.Response(text="<div id=a>x" * 20_000, content_type="text/html")

    async def first(asker: Asker) -> RecordsAnswer:
        return await asker.page()

    with served_api({"/list": nested}) as site:
        found = ask(site, first, answer="html", rows="div", key_path="@id", paths={})
    assert not found.records
    assert found.problem

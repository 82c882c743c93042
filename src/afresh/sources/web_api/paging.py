"""How the next page of a list is found: by its number, by a token, or by an address that an answer names.

``{page}`` and ``{offset}`` in a request count pages or records, so that any page can be read at any time. All
other pages are read one after another: ``next`` says where an answer has the token for ``{next}`` or, if the
request has no ``{next}``, the address of the next page. ``header:Link`` is the link of the relation "next" in
the HTTP header Link (RFC 8288), ``header:NAME`` any other header."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from afresh.sources.http.urls import host_group, resolve_link
from afresh.sources.web_api.request_template import ApiRequest, RequestTemplate, Value

PagingWay: TypeAlias = Literal["number", "token", "address", "single"]
PAGE_PARTS = ("page", "offset", "size", "next")
HEADER = "header:"
_MOST_QUERIES = 2000  # queries whose next pages are known
_LINK = re.compile(r"<([^<>]*)>([^<]*)")
_NEXT = re.compile(r""";\s*rel\s*=\s*(?:"[^"]*\bnext\b[^"]*"|'?next\b)""", re.IGNORECASE)


def paging_way(parts: Collection[str], next_path: str) -> PagingWay:
    """Return how pages follow each other, from the placeholders of a request and the setting ``next``.

    >>> paging_way(["page"], ""), paging_way(["next"], "meta.next_cursor"), paging_way([], "header:Link")
    ('number', 'token', 'address')
    """
    if next_path:
        return "token" if "next" in parts else "address"
    return "number" if {"page", "offset"} & set(parts) else "single"


def next_in_headers(next_path: str, headers: Mapping[str, str]) -> str:
    """Return the token or address of the next page in the headers of an answer (names in lower case).

    >>> link = '<https://a.test/?page=1>; rel="prev", <https://a.test/?page=3>; rel="next"'
    >>> next_in_headers("header:Link", {"link": link})
    'https://a.test/?page=3'
    """
    name = next_path.removeprefix(HEADER).strip().lower()
    value = headers.get(name, "")
    if name != "link":
        return value.strip()
    return next((found[1].strip() for found in _LINK.finditer(value) if _NEXT.search(found[2])), "")


def next_address(url: str, link: str, secret_parameters: Collection[str] = ()) -> str:
    """Return the address of the next page that the page ``url`` names, or "" if it is on another host. A link
    by http on a page by https is followed by https: servers behind a proxy often do not know their own
    address. Parameters that contain secrets are removed, because they are added to every request.

    >>> next_address("https://a.test/w?p=1", "http://a.test/w?p=2&key=x", ["key"])
    'https://a.test/w?p=2'
    >>> next_address("https://a.test/", "https://b.test/")
    ''
    """
    found = resolve_link(url, link)
    if found is None or host_group(found) != host_group(url):
        return ""
    parts = urlsplit(found)._replace(scheme=urlsplit(url).scheme)
    given = parse_qsl(parts.query, keep_blank_values=True)
    if any(name in secret_parameters for name, _ in given):
        kept = [(name, value) for name, value in given if name not in secret_parameters]
        parts = parts._replace(query=urlencode(kept))
    return urlunsplit(parts)


@dataclass(frozen=True, slots=True)
class PageNumbers:
    """What the first page of a list is called: its number, and its token (OpenAlex and Crossref use ``*``).
    ``size`` is the number of records on a page that is asked for."""

    first_page: int = 1
    first_next: str = ""
    size: int = 10


@dataclass(slots=True)
class PagedRequest:
    """The requests for the pages of a list. ``marks`` are the tokens or addresses of pages that follow
    others, by query and by number of the page."""

    template: RequestTemplate
    way: PagingWay
    numbers: PageNumbers
    marks: dict[Hashable, dict[int, str]] = field(default_factory=dict)

    def can_ask(self, query: Hashable, number: int) -> bool:
        """Return whether a page can be requested now: the first, or one that an earlier answer named."""
        return number == 1 or self.way == "number" or number in self.marks.get(query, ())

    def request(
        self, query: Hashable, values: Mapping[str, Value], number: int, page_size: int
    ) -> ApiRequest:
        """Return the request for page ``number``, counted from 1. ``page_size`` is the number of records that
        earlier pages hold."""
        mark = self.marks.get(query, {}).get(number, "") if number > 1 else ""
        if mark and self.way == "address":
            return ApiRequest(mark)
        numbers = self.numbers
        return self.template.fill(
            {
                **values,
                "page": numbers.first_page + number - 1,
                "offset": (number - 1) * page_size,
                "size": numbers.size,
                "next": mark or numbers.first_next,
            }
        )

    def learn(self, query: Hashable, number: int, mark: str) -> None:
        """Record the token or the address of the page after ``number``; it is empty after the last page."""
        if self.way in ("number", "single"):
            return
        known = self.marks.setdefault(query, {})
        known.pop(number + 1, None)
        if mark:
            known[number + 1] = mark
        while len(self.marks) > _MOST_QUERIES:
            del self.marks[next(iter(self.marks))]

    def forget(self, query: Hashable) -> None:
        """Forget the tokens of a query. They may have expired, so it is read from its first page again."""
        self.marks.pop(query, None)

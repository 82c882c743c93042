"""Sites on loopback in the shapes of well-known APIs: parameters, paging, answers and limits of each.

All serve the records of one shelf. They refuse parameters that they do not know, as strict servers do, so
that a request of a wrong shape fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Any, TypeAlias

from aiohttp import web
from graphql import GraphQLError, build_schema, graphql_sync
from tests.servers.api_site import ApiHandler

Row: TypeAlias = dict[str, Any]
AUTHORS = ("Ann Aue", "Bo Zarrieß", "Cy Cho")
_BEGIN_S = 1_700_000_000


@dataclass
class Shelf:
    """Records of 3 authors; ``change`` raises the citations of one, and sets its time of change."""

    rows: dict[int, Row] = field(default_factory=dict)
    clock: int = _BEGIN_S

    @classmethod
    def of(cls, count: int = 60) -> Shelf:
        shelf = cls()
        for number in range(1, count + 1):
            author = AUTHORS[number * len(AUTHORS) // (count + 1)]
            shelf.rows[number] = {"title": f"Paper {number}", "author": author, "cites": number}
            shelf.change(number)
        return shelf

    def change(self, *numbers: int) -> None:
        for number in numbers:
            self.clock += 1
            self.rows[number] |= {"cites": self.rows[number]["cites"] + 1, "updated": self.clock}

    def cites(self, number: int) -> int:
        return int(self.rows[number]["cites"])

    def found(self, author: str = "", title: str = "") -> list[int]:
        """The numbers of the records of an author and with the words of a title, in their order."""
        words = title.casefold().split()
        return [
            number
            for number, row in self.rows.items()
            if (not author or author.strip('"') == row["author"])
            and all(word in row["title"].casefold().split() for word in words)
        ]


def stamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def only(request: web.Request, *known: str) -> Mapping[str, str]:
    """The parameters of a request; any other one is an error."""
    for name in request.query:
        if name not in known:
            raise web.HTTPBadRequest(text=f"unknown parameter {name}")
    return request.query


def crossref(shelf: Shelf) -> dict[str, ApiHandler]:
    """One parameter for each field, cursors from ``*``, look-ups with another shape, bulk by a filter."""

    def item(number: int) -> Row:
        row = shelf.rows[number]
        family, given = row["author"].split()[1], row["author"].split()[0]
        return {
            "DOI": f"10.5555/P{number}",
            "title": [row["title"]],
            "author": [{"family": family, "given": given}],
            "is-referenced-by-count": row["cites"],
            "indexed": {"timestamp": row["updated"]},
        }

    async def works(request: web.Request) -> web.Response:
        given = only(request, "query.author", "query.title", "rows", "cursor", "filter", "mailto")
        numbers = shelf.found(given.get("query.author", ""), given.get("query.title", ""))
        wanted = [part[4:].lower() for part in given.get("filter", "").split(",") if part.startswith("doi:")]
        if wanted:
            numbers = [number for number in numbers if f"10.5555/p{number}" in wanted]
        size = min(int(given.get("rows", "20")), 1000)
        cursor = given.get("cursor")
        begin = 0 if cursor in (None, "*") else int(cursor.removeprefix("after+"))
        message: Row = {"total-results": len(numbers), "items": [*map(item, numbers[begin : begin + size])]}
        if cursor is not None:  # a cursor comes with every page, also the last
            message["next-cursor"] = f"after+{begin + size}"
        return web.json_response({"status": "ok", "message": message})

    async def work(request: web.Request) -> web.Response:
        doi = request.match_info["doi"].lower()
        number = int(doi.rpartition("p")[2])
        if number not in shelf.rows:
            raise web.HTTPNotFound(text="Resource not found.")
        return web.json_response({"status": "ok", "message": item(number)})

    return {"/works": works, "/works/{doi:.*}": work}


def openalex(shelf: Shelf) -> dict[str, ApiHandler]:
    """Keys that are addresses, filters, cursors that end with null, bulk by ``|``, a key in the query."""

    def item(number: int) -> Row:
        row = shelf.rows[number]
        url = f"https://openalex.org/W{number}"
        return {"id": url, "display_name": row["title"], "cited_by_count": row["cites"]}

    async def works(request: web.Request) -> web.Response:
        given = only(request, "search", "filter", "per-page", "cursor", "api_key")
        if given.get("api_key") != "open sesame":
            raise web.HTTPForbidden(text="api_key")
        numbers = shelf.found(title=given.get("search", ""))
        for part in filter(None, given.get("filter", "").split(",")):
            name, _, value = part.partition(":")
            if name == "openalex":
                numbers = [number for number in numbers if f"W{number}" in value.split("|")]
            elif name == "raw_author_name.search":
                numbers = [number for number in numbers if number in shelf.found(value)]
            else:
                raise web.HTTPBadRequest(text=f"unknown filter {name}")
        size, cursor = min(int(given.get("per-page", "25")), 200), given.get("cursor")
        begin = 0 if cursor in (None, "*") else int(cursor)
        more = str(begin + size) if cursor is not None and begin + size < len(numbers) else None
        results = [*map(item, numbers[begin : begin + size])]
        return web.json_response({"meta": {"count": len(numbers), "next_cursor": more}, "results": results})

    async def work(request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        if number not in shelf.rows:
            raise web.HTTPNotFound
        return web.json_response(item(number))

    return {"/works": works, "/works/W{number}": work}


def github(shelf: Shelf) -> dict[str, ApiHandler]:
    """Issues of a repository: a bare list, ``since``, Link header, a bearer token in a header."""

    def item(number: int) -> Row:
        row = shelf.rows[number]
        kind: Row = {"pull_request": {"url": "…"}} if number % 10 == 0 else {}
        updated = stamp(row["updated"])
        return {
            "number": number,
            "title": row["title"],
            "comments": row["cites"],
            "updated_at": updated,
        } | kind

    def check(request: web.Request) -> None:
        if request.headers.get("Authorization") != "Bearer gh-token":
            raise web.HTTPUnauthorized

    async def issues(request: web.Request) -> web.Response:
        check(request)
        given = only(request, "state", "since", "per_page", "page", "sort", "direction")
        numbers = [n for n, row in shelf.rows.items() if stamp(row["updated"]) >= given.get("since", "")]
        numbers.sort(key=lambda number: shelf.rows[number]["updated"])
        size, page = min(int(given.get("per_page", "30")), 100), int(given.get("page", "1"))
        rows = [*map(item, numbers[(page - 1) * size : page * size])]
        response = web.json_response(rows)
        if page * size < len(numbers):
            following = request.url.update_query(page=page + 1)
            last = request.url.update_query(page=-(-len(numbers) // size))
            response.headers["Link"] = f'<{following}>; rel="next", <{last}>; rel="last"'
        return response

    async def issue(request: web.Request) -> web.Response:
        check(request)
        number = int(request.match_info["number"])
        if number not in shelf.rows:
            raise web.HTTPNotFound
        return web.json_response(item(number))

    base = "/repos/o/r/issues"
    return {base: issues, base + "/{number}": issue}


def datasette(shelf: Shelf) -> dict[str, ApiHandler]:
    """A table as Datasette serves it: ``_search``, ``_next`` tokens, ``id__in``, rows of a look-up."""

    def item(number: int) -> Row:
        row = shelf.rows[number]
        return {"id": number, "title": row["title"], "author": row["author"], "cites": row["cites"]}

    async def table(request: web.Request) -> web.Response:
        given = only(request, "_search", "_size", "_next", "_shape", "id__in", "author", "_nocount")
        numbers = shelf.found(given.get("author", ""), given.get("_search", "").replace('"', ""))
        if "id__in" in given:
            numbers = [number for number in numbers if str(number) in given["id__in"].split(",")]
        size = min(int(given.get("_size", "100")), 1000)
        begin = int(given.get("_next", "0") or 0)
        more = str(begin + size) if begin + size < len(numbers) else None
        rows = [*map(item, numbers[begin : begin + size])]
        found = {"ok": True, "rows": rows, "next": more, "filtered_table_rows_count": len(numbers)}
        return web.json_response(found)

    async def row(request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        if number not in shelf.rows:
            raise web.HTTPNotFound
        return web.json_response({"ok": True, "rows": [item(number)]})

    return {"/data/papers.json": table, "/data/papers/{number}.json": row}


SCHEMA = """
type Paper { id: ID!, title: String!, cites: Int! }
type PageInfo { endCursor: String, hasNextPage: Boolean! }
type Papers { totalCount: Int!, nodes: [Paper!]!, pageInfo: PageInfo! }
type Query {
  search(text: String, author: String, first: Int!, after: String): Papers!
  papers(ids: [ID!]!): [Paper!]!
  paper(id: ID!): Paper
}
"""


def graphql(shelf: Shelf) -> dict[str, ApiHandler]:
    """A GraphQL server whose queries graphql-core parses, checks and runs. It accepts POST alone."""
    schema = build_schema(SCHEMA)

    def item(number: int) -> Row:
        return {"id": str(number), "title": shelf.rows[number]["title"], "cites": shelf.cites(number)}

    class Root:
        def search(self, _info: Any, **given: Any) -> Row:
            numbers = shelf.found(given.get("author") or "", given.get("text") or "")
            begin, size = int(given.get("after") or 0), min(given["first"], 100)
            if size < 1:
                raise GraphQLError("first must be positive")
            more = begin + size < len(numbers)
            info = {"endCursor": str(begin + size) if more else None, "hasNextPage": more}
            nodes = [*map(item, numbers[begin : begin + size])]
            return {"totalCount": len(numbers), "nodes": nodes, "pageInfo": info}

        def papers(self, _info: Any, ids: Sequence[str]) -> list[Row]:
            return [item(int(number)) for number in ids if int(number) in shelf.rows]

        def paper(self, _info: Any, id: str) -> Row | None:  # noqa: A002
            return item(int(id)) if int(id) in shelf.rows else None

    async def answer(request: web.Request) -> web.Response:
        if request.method != "POST" or request.content_type != "application/json":
            raise web.HTTPMethodNotAllowed(request.method, ["POST"])
        given = json.loads(await request.read())
        found = graphql_sync(schema, given["query"], Root(), variable_values=given.get("variables"))
        return web.json_response(found.formatted)

    return {"/graphql": answer}


def shop(shelf: Shelf) -> dict[str, ApiHandler]:
    """A shop for people: HTML pages of ten products, a form by POST, a link to the next page."""

    def product(number: int) -> str:
        row = shelf.rows[number]
        return (
            f'<li class="product" id="item-{number}"><a class="name" href="/p/{number}">'
            f"{escape(row['title'])}"
            f'</a> <span class="price">€ {row["cites"]}.50</span></li>'
        )

    async def search(request: web.Request) -> web.Response:
        posted = {name: str(value) for name, value in (await request.post()).items()}
        given = {**request.query, **posted}
        numbers = shelf.found(title=given.get("q", ""))
        begin = int(given.get("from", "0"))
        rows = "".join(map(product, numbers[begin : begin + 10]))
        more = f'<a class="next" href="/search?q={given.get("q", "")}&from={begin + 10}">more</a>'
        head = f'<p class="found">{begin + 1}–{begin + 10} of {len(numbers):,} products</p>'
        text = f"<html><body>{head}<ul>{rows}</ul>{more if begin + 10 < len(numbers) else ''}</body></html>"
        return web.Response(text=text, content_type="text/html")

    async def page(request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        if number not in shelf.rows:
            raise web.HTTPNotFound
        return web.Response(text=f"<ul>{product(number)}</ul>", content_type="text/html")

    return {"/search": search, "/p/{number}": page}


def atom(shelf: Shelf) -> dict[str, ApiHandler]:
    """Search results as Atom, in the shape of arXiv: namespaces, ``start`` and ``max_results``."""

    async def query(request: web.Request) -> web.Response:
        given = only(request, "search_query", "id_list", "start", "max_results")
        numbers = shelf.found(title=given.get("search_query", "").replace("all:", ""))
        if given.get("id_list"):
            numbers = [number for number in numbers if f"a.{number}" in given["id_list"].split(",")]
        begin, size = int(given.get("start", "0")), int(given.get("max_results", "10"))
        entries = "".join(
            f"<entry><id>http://arxiv.org/abs/a.{number}</id><title>{shelf.rows[number]['title']}</title>"
            f"<x:cites n='{shelf.cites(number)}'/></entry>"
            for number in numbers[begin : begin + size]
        )
        spaces = 'xmlns="http://www.w3.org/2005/Atom" xmlns:x="http://x.test/"'
        total = f'<o:totalResults xmlns:o="http://o.test/">{len(numbers)}</o:totalResults>'
        text = f"<?xml version='1.0' encoding='UTF-8'?><feed {spaces}>{total}{entries}</feed>"
        return web.Response(text=text, content_type="application/atom+xml")

    return {"/api/query": query}


SHAPES: dict[str, Callable[[Shelf], dict[str, ApiHandler]]] = {
    "Crossref": crossref,
    "OpenAlex": openalex,
    "GitHub": github,
    "Datasette": datasette,
    "GraphQL": graphql,
    "A shop in HTML": shop,
    "arXiv": atom,
}

"""The page that describes the API names every operation and type, and needs no script of its own."""

from __future__ import annotations

import json
import re

from tests.web.serving import Client

from afresh.web.api_reference import list_operations, list_types


def test_the_page_describes_every_operation_and_every_type(web: Client) -> None:
    api = json.loads(web.get("/api/v1/openapi.json").text)
    page = web.get("/api/docs").text
    operations, types = list_operations(api), list_types(api)
    assert len(operations) == sum(len(methods) for methods in api["paths"].values()) > 10
    assert len(types) == len(api["components"]["schemas"]) > 10
    for one in operations:
        assert f'<span class="tag">{one.method}</span> <code>{one.path}</code>' in page
        named = set(re.findall(r"[A-Z]\w+", f"{one.body} {one.answer}"))
        assert named <= {each.name for each in types}
    for each in types:
        assert f'id="type-{each.name}"' in page
    assert page.count("Needs the token") == sum(one.needs_token for one in operations) > 0


def test_it_loads_no_script_but_those_of_every_page(web: Client) -> None:
    def scripts(path: str) -> set[str]:
        return set(re.findall(r'<script[^>]*src="([^"]*)"', web.get(path).text))

    assert scripts("/api/docs") <= scripts("/items")
    assert web.get("/static/swagger-ui-bundle.js").status == 404

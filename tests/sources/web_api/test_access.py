"""Keys, tokens and signatures reach the API that the settings name, and nobody else; tokens are renewed."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiohttp import web
from tests.servers.api_site import ApiHandler, ApiSite, served_api
from tests.sources.polling import SetClock
from tests.sources.web_api.asking import Asker, ask, settings_of

from afresh.sources.context import SourceContext
from afresh.sources.web_api.api_client import ApiClient
from afresh.sources.web_api.records_answer import RecordsAnswer
from afresh.values.errors import UsageError

SECRETS = {"KEY": "open sésame/1", "ID": "me", "SECRET": "h:unter2", "TOKEN": "t0ken"}
OAUTH = {"client_id": "env:ID", "client_secret": "env:SECRET"}


class Issuer:
    """A server that gives out tokens for a minute, and serves a list to those that have a valid one."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.forms: list[dict[str, str]] = []
        self.refused = 0
        self.life: object = 60

    async def token(self, request: web.Request) -> web.Response:
        wanted = base64.b64encode(b"me:h%3Aunter2").decode()
        form = {key: str(value) for key, value in (await request.post()).items()}
        self.forms.append(form)
        is_known = request.headers.get("Authorization") == f"Basic {wanted}"
        if not is_known and form.get("client_secret") != "h:unter2":
            return web.json_response({"error": "invalid_client"}, status=401)
        self.tokens.append(f"token-{len(self.tokens) + 1}")
        return web.json_response(
            {"access_token": self.tokens[-1], "expires_in": self.life, "token_type": "Bearer"}
        )

    async def list(self, request: web.Request) -> web.Response:
        if not self.tokens or request.headers.get("Authorization") != f"Bearer {self.tokens[-1]}":
            self.refused += 1
            return web.json_response({"error": "invalid_token"}, status=401)
        return web.json_response({"results": [{"id": 1}]})


@contextmanager
def issued() -> Iterator[tuple[Issuer, ApiSite]]:
    issuer = Issuer()
    with served_api({"/token": issuer.token, "/list": issuer.list}) as site:
        yield issuer, site


@pytest.mark.parametrize(
    "life", [int("9" * 400), "soon", [], -5, None], ids=["huge", "word", "list", "past", "none"]
)
def test_a_token_with_a_strange_life_is_used(life: object) -> None:
    with issued() as (issuer, site):
        issuer.life = life
        oauth = {**OAUTH, "token_url": site.url + "/token"}
        assert ask(site, first, secrets=SECRETS, oauth=oauth).problem == ""


async def first(asker: Asker) -> RecordsAnswer:
    return await asker.page()


@pytest.mark.parametrize("client_in", ["header", "body"])
def test_a_token_is_requested_once_renewed_before_its_end_and_after_a_refusal(client_in: str) -> None:
    clock = SetClock()

    async def visit(asker: Asker) -> list[int]:
        found = [await asker.page(), await asker.page()]
        clock.time_s += 55  # five seconds before its end
        found.append(await asker.page())
        clock.time_s += 2
        issuer.tokens.append("revoked by the server")
        found.append(await asker.page())
        assert [one.problem for one in found] == [""] * 4
        return [one.requests for one in found]

    with issued() as (issuer, site):
        oauth = {**OAUTH, "token_url": site.url + "/token", "scope": "read", "client_in": client_in}
        requests = ask(site, visit, clock=clock, secrets=SECRETS, oauth=oauth)
    assert requests == [2, 1, 2, 3]  # the last: refused, a new token, the list
    assert issuer.refused == 1
    assert all(form["scope"] == "read" for form in issuer.forms)


def test_a_wrong_client_secret_is_said_without_showing_it() -> None:
    with issued() as (_, site):
        oauth = {"client_id": "me", "client_secret": "wrong-secret", "token_url": site.url + "/token"}
        found = ask(site, first, oauth=oauth)
    assert found.refused
    assert found.problem == "oauth.token_url: 401 Unauthorized (invalid_client)"
    assert "wrong-secret" not in repr(settings_of(oauth=oauth))


def test_a_token_server_that_fails_is_asked_again_later() -> None:
    async def broken(_: web.Request) -> web.Response:
        return web.Response(status=500, text="{")

    with served_api({"/token": broken}) as site:
        found = ask(site, first, secrets=SECRETS, oauth={**OAUTH, "token_url": site.url + "/token"})
    assert not found.refused
    assert "oauth.token_url: 500" in found.problem


def listed(**more: Any) -> tuple[list[web.Request], ApiHandler]:
    seen: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request)
        return web.json_response({"results": [{"id": 1}], **more})

    return seen, answer


def test_a_key_in_the_query_is_sent_and_never_shown() -> None:
    async def refuse(request: web.Request) -> web.Response:
        seen.append(request)
        echoed = {"errors": [{"message": f"the key {request.query['key']} of {request.path_qs} is wrong"}]}
        return web.json_response(echoed)

    seen: list[web.Request] = []
    with served_api({"/list": refuse}) as site:
        found = ask(site, first, secrets=SECRETS, parameters={"key": "env:KEY"})
    assert seen[0].query["key"] == "open sésame/1"
    assert "•••" in found.problem
    assert "sésame" not in found.problem
    assert "s%C3%A9same" not in found.problem


@pytest.mark.parametrize("place", ["body", "Link header"])
def test_a_next_page_on_another_host_is_not_asked(place: str) -> None:
    stolen, steal = listed()
    with served_api({"/list": steal}) as foreign:
        _, plain = listed(next=f"{foreign.url}/list?page=2")

        async def with_link(_: web.Request) -> web.Response:
            link = {"Link": f'<{foreign.url}/list>; rel="next"'}
            return web.json_response({"results": [{"id": 1}]}, headers=link)

        with served_api({"/list": plain if place == "body" else with_link}) as site:
            path = "/list?size={size}"
            access: dict[str, Any] = {"parameters": {"key": "env:KEY"}, "headers": {"X-Key": "env:TOKEN"}}
            where = "next" if place == "body" else "header:Link"
            found = ask(site, first, path=path, secrets=SECRETS, next=where, **access)
    assert found.problem == "next: leads to another host, which is not asked"
    assert stolen == []


def test_a_redirect_to_another_host_gets_no_secret_and_no_signature() -> None:
    seen, answer = listed()
    with served_api({"/list": answer}) as foreign:

        async def redirect(_: web.Request) -> web.Response:
            raise web.HTTPFound(foreign.url + "/list")

        with served_api({"/list": redirect}) as site:
            sign = "tests.sources.web_api.signing:headers"
            ask(site, first, secrets=SECRETS, parameters={"key": "env:KEY"}, sign=sign)
    assert len(seen) == 1
    assert "key" not in seen[0].query
    assert "X-Signature" not in seen[0].headers


def test_the_address_of_the_next_page_may_repeat_the_key_which_is_sent_once() -> None:
    seen: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request)
        following = f"{request.url}&page=2" if len(seen) == 1 else None
        return web.json_response({"results": [{"id": len(seen)}], "next": following})

    async def both(asker: Asker) -> list[RecordsAnswer]:
        return [await asker.page(1), await asker.page(2)]

    with served_api({"/list": answer}) as site:
        one, two = ask(
            site, both, path="/list?a={size}", next="next", secrets=SECRETS, parameters={"key": "env:KEY"}
        )
    assert (one.has_more, two.has_more) == (True, False)
    assert "sésame" not in one.next
    assert seen[1].query.getall("key") == ["open sésame/1"]
    assert seen[1].query["page"] == "2"


def test_a_function_signs_requests_by_headers_or_by_the_address() -> None:
    seen, answer = listed()
    with served_api({"/list": answer}) as site:
        sign = "tests.sources.web_api.signing:"
        body = {"url": "/list?a={size}", "body": {"page": "{page}"}}
        assert not ask(site, first, path=body, sign=sign + "headers").problem
        assert not ask(site, first, path="/list?page={page}", sign=sign + "in_the_address").problem
    assert len(seen[0].headers["X-Signature"]) == 64
    assert seen[1].query["sig"] == "s1gned"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("elsewhere", "sign: changed the host of the request"),
        ("broken", "sign: RuntimeError: no key for GET"),
        ("nothing", "sign: gave NoneType, not a mapping of headers"),
    ],
)
def test_a_signature_that_fails_sends_nothing(function: str, words: str) -> None:
    seen, answer = listed()
    with served_api({"/list": answer}) as site:
        found = ask(site, first, sign=f"tests.sources.web_api.signing:{function}")
    assert found.problem == words
    assert seen == []


def test_mistakes_are_said_when_the_source_is_opened() -> None:
    with pytest.raises(UsageError, match=r"parameters.key: the environment has no variable NOWHERE"):
        ApiClient(settings_of(parameters={"key": "env:NOWHERE"}), SourceContext())
    with pytest.raises(UsageError, match="sign 'nowhere' is no function"):
        ApiClient(settings_of(sign="nowhere"), SourceContext())
    oauth = {"token_url": "nowhere", "client_id": "a", "client_secret": "b"}
    with pytest.raises(UsageError, match=r"oauth.token_url: 'nowhere' is not an http"):
        ApiClient(settings_of(oauth=oauth), SourceContext())

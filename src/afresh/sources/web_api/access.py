"""Access to an API: keys in the query, OAuth 2 client credentials, and a function of the user that signs.

``PoliteClient`` applies it only to requests to the origin that the settings name, never after a redirect to
another host. Keys in headers are the setting ``headers`` of every web source."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Literal
from urllib.parse import quote, quote_plus, urlencode, urlsplit

from pydantic import BaseModel, ConfigDict, Field

from afresh.sources.context import SourceContext
from afresh.sources.http.client import AccessError, RequestCost, SendRequest
from afresh.sources.http.fetcher import Reply, Request
from afresh.sources.http.statuses import classify_reply
from afresh.sources.http.urls import origin
from afresh.sources.python.user_calls import UserCalls
from afresh.sources.python.user_function import RaisedError, find_function
from afresh.sources.secrets import Secret, resolve
from afresh.values.errors import UsageError

_SIGNING_S = 10.0  # the longest time that a signature may take
_SIGNERS = 4  # functions of the user that run at once
_RENEW_SHARE, _RENEW_S = 0.1, 60.0  # a token is renewed when this share or this time of its life is left
_USUAL_LIFE_S = 3600.0  # of a token whose answer states none
_SHORTEST_LIFE_S = 1.0
_LONGEST_TOKEN = 16_384
_PLAIN_IN_QUERIES = "/?:@!$'()*,;"  # characters that some programs do not encode in queries


class OAuthSettings(BaseModel):
    """OAuth 2 with client credentials (RFC 6749, §4.4). ``client_id`` and ``client_secret`` may be secrets
    (``env:NAME``). They are sent in the header Authorization or, with ``client_in = "body"``, in the form."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token_url: str = Field(min_length=1)
    client_id: str = Field(min_length=1, repr=False)
    client_secret: str = Field(min_length=1, repr=False)
    scope: str = ""
    client_in: Literal["header", "body"] = "header"


@dataclass(frozen=True, slots=True)
class RequestToSign:
    """What a function that signs requests receives. It returns the headers to add, as a mapping, or a changed
    copy (``dataclasses.replace``) with another ``url`` of the same host, or other headers."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)


class ApiAccess:
    """Adds what an API demands to its requests, in this order: the query ``parameters``, the OAuth token, the
    signature. ``name`` is the name of the source, for messages."""

    def __init__(
        self,
        name: str,
        context: SourceContext,
        parameters: Mapping[str, str],
        oauth: OAuthSettings | None = None,
        sign: str = "",
    ) -> None:
        self._parameters = {
            key: resolve(f"source {name!r}, parameters.{key}", value, context.resolver)
            for key, value in parameters.items()
        }
        self._token = None if oauth is None else _Token(name, oauth, context)
        self._sign = find_function(sign, "sign") if sign else None
        self._calls = UserCalls(f"afresh {name} sign", _SIGNERS)
        self._signed = 0

    def secrets(self) -> Iterator[Secret]:
        """Yield all secrets, also as they are spelt in addresses."""
        for secret in self._parameters.values():
            yield secret
            for word in (secret.reveal(), *secret.reveal().split()):
                yield from (Secret(quote(word, safe=safe)) for safe in ("", _PLAIN_IN_QUERIES))
        if self._token is not None:
            yield from self._token.secrets()

    async def authorise(self, request: Request, cost: RequestCost, send: SendRequest) -> Request:
        """Return the request with everything that the API demands. ``send`` is used to request a token.
        Raise ``AccessError`` if access cannot be had."""
        if self._parameters:
            added = urlencode({key: secret.reveal() for key, secret in self._parameters.items()})
            mark = "&" if urlsplit(request.url).query else "?"
            request = replace(request, url=f"{request.url}{mark}{added}")
        if self._token is not None:
            token = await self._token.valid(request, cost, send)
            request = replace(request, headers={**request.headers, "Authorization": f"Bearer {token}"})
        return request if self._sign is None else await self._signed_request(request)

    def renews_after(self, reply: Reply) -> bool:
        """Return whether the request may be sent again with a new token, because this one was not accepted.
        The token is then forgotten."""
        if self._token is None or reply.status != HTTPStatus.UNAUTHORIZED:
            return False
        return self._token.forget()

    async def close(self) -> None:
        await self._calls.close()

    async def _signed_request(self, request: Request) -> Request:
        assert self._sign is not None
        self._signed += 1
        given = RequestToSign(request.method, request.url, dict(request.headers), request.body)
        try:
            async with asyncio.timeout(_SIGNING_S):
                found = await self._calls.call(self._sign, given, self._signed)
        except TimeoutError:
            raise AccessError(f"sign: no signature within {_SIGNING_S:g} s") from None
        except RaisedError as error:
            raise AccessError(f"sign: {error}") from None
        if isinstance(found, RequestToSign):
            given = found
        elif isinstance(found, Mapping):
            given = replace(given, headers={**given.headers, **found})
        else:
            raise AccessError(f"sign: gave {type(found).__name__}, not a mapping of headers")
        if origin(given.url) != origin(request.url):
            raise AccessError("sign: changed the host of the request")
        headers = {str(name).title(): str(value) for name, value in given.headers.items()}
        return replace(request, url=given.url, headers=headers)


class _Token:
    """The access token of OAuth 2: requested when it is first needed, and again before it ends."""

    def __init__(self, name: str, settings: OAuthSettings, context: SourceContext) -> None:
        self._settings, self._clock = settings, context.clock
        self._id, self._secret = (
            resolve(f"source {name!r}, oauth.{setting}", getattr(settings, setting), context.resolver)
            for setting in ("client_id", "client_secret")
        )
        try:
            origin(settings.token_url)
        except UsageError as error:
            raise UsageError(f"source {name!r}, oauth.token_url: {error}") from None
        self._lock = asyncio.Lock()
        self._known: Secret | None = None
        self._renew_at_s = self._received_s = 0.0

    def secrets(self) -> Iterator[Secret]:
        yield self._secret
        yield Secret(self._basic())
        if self._known is not None:
            yield self._known

    def forget(self) -> bool:
        """Forget the token. Return False if it was requested just now: another one would be refused too."""
        is_old = self._known is not None and self._clock.elapsed_s() > self._received_s + _SHORTEST_LIFE_S
        if is_old:
            self._known = None
        return is_old

    async def valid(self, request: Request, cost: RequestCost, send: SendRequest) -> str:
        async with self._lock:
            if self._known is None or self._clock.elapsed_s() >= self._renew_at_s:
                reply = await send(self._request(request), cost)
                self._known = Secret(self._read(reply))
            return self._known.reveal()

    def _request(self, like: Request) -> Request:
        """Return the request for a token, with the limits and the user agent of the request ``like``."""
        settings = self._settings
        form = {"grant_type": "client_credentials"}
        if settings.scope:
            form["scope"] = settings.scope
        headers = {name: like.headers[name] for name in ("User-Agent", "Accept-Encoding")}
        headers |= {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        if settings.client_in == "header":
            headers["Authorization"] = f"Basic {self._basic()}"
        else:
            form |= {"client_id": self._id.reveal(), "client_secret": self._secret.reveal()}
        body = urlencode(form).encode()
        return Request(settings.token_url, headers, like.limits, method="POST", body=body)

    def _basic(self) -> str:
        both = f"{quote_plus(self._id.reveal())}:{quote_plus(self._secret.reveal())}"
        return base64.b64encode(both.encode()).decode()

    def _read(self, reply: Reply) -> str:
        found: object = None
        if len(reply.body) <= _LONGEST_TOKEN:  # small enough to be parsed here
            try:
                found = json.loads(reply.body)
            except (ValueError, RecursionError):
                found = None
        answer = found if isinstance(found, dict) else {}
        if reply.trouble is not None or reply.status != HTTPStatus.OK:
            problem = classify_reply(reply, conditional=False)[1]
            words = str(answer.get("error", ""))[:100]
            is_final = reply.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
            text = f"oauth.token_url: {problem}{f' ({words})' if words else ''}"
            raise AccessError(text, refused=is_final)
        token, life = answer.get("access_token"), answer.get("expires_in")
        if not isinstance(token, str) or not (token.isascii() and token.isprintable()) or not token:
            raise AccessError("oauth.token_url: the answer has no access_token")
        try:
            life_s = max(float(life if life is not None else _USUAL_LIFE_S), _SHORTEST_LIFE_S)
        except (TypeError, ValueError, OverflowError):  # the last: a number of hundreds of digits
            life_s = _USUAL_LIFE_S
        self._received_s = self._clock.elapsed_s()
        self._renew_at_s = self._received_s + life_s - min(_RENEW_S, _RENEW_SHARE * life_s)
        return token

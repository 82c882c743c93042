"""Settings of a source of kind ``http``, its secrets, which are never shown, and its choice of a fetcher."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, unquote, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from afresh.sources.change_detection import check_css_selector
from afresh.sources.context import SourceContext
from afresh.sources.http.decompression import ENCODINGS
from afresh.sources.http.fetcher import USER_AGENT, Fetcher, ResponseLimits
from afresh.sources.http.follow.settings import FollowSettings, read_follow
from afresh.sources.http.ip_addresses import address_problem, with_remedy
from afresh.sources.http.pacing.quota import QuotaRule, parse_quota
from afresh.sources.http.politeness import Politeness
from afresh.sources.http.rendering.modes import RenderMode
from afresh.sources.http.rendering.rules import BrowserRules, RenderRules, VisitRules
from afresh.sources.http.urls import origin
from afresh.sources.linear_pattern import LinearPattern, compile_pattern
from afresh.sources.secrets import Resolver, Secret, resolve
from afresh.sources.settings import PositiveSeconds, Seconds, Size, SizeRate, SourceSettings, Texts
from afresh.sources.web_api.request_template import RequestTemplate, RequiredEndpoint
from afresh.values.errors import UsageError


class WebSettings(SourceSettings):
    """Settings of all sources that send requests to web servers: user agent, politeness and headers.
    ``headers``, ``cookies`` and ``proxy`` may be secrets (``env:NAME``)."""

    user_agent: str = Field(default=USER_AGENT, min_length=1)
    respect_robots: bool = True
    delay: Seconds = 1.0
    first_rest: PositiveSeconds = 10.0
    longest_rest: PositiveSeconds = 86400.0
    quota: str = ""
    allow_private: bool = False
    headers: Mapping[str, str] = Field(default_factory=dict, repr=False)
    cookies: Mapping[str, str] = Field(default_factory=dict, repr=False)
    proxy: str = Field(default="", repr=False)
    max_size: Size = 50_000_000

    @property
    def default_min_interval_s(self) -> float | None:
        """One minute: a server that others use is not asked for one record every second."""
        return 60.0

    @property
    def delay_s(self) -> float | None:
        return self.delay

    @property
    def first_rest_s(self) -> float:
        return self.first_rest

    @property
    def quota_rule(self) -> QuotaRule | None:
        return parse_quota(self.quota, self.time_zone) if self.quota else None

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        _ = self.quota_rule


class HttpBulkSettings(BaseModel):
    """How many items of a source of kind ``http`` are polled with one request. ``items`` is the address of an
    item, with ``{key}``; ``request`` asks for up to ``at_once`` records by ``{keys}``, joined by
    ``joined_by``. ``rows``, ``key_path`` and ``total`` are JSON paths in the answer.

    >>> papers = {"items": "https://a.test/p/{key}.json", "request": "https://a.test/p?ids={keys}"}
    >>> bulk = HttpBulkSettings.model_validate(papers); bulk.key_of("https://a.test/p/7.json")
    '7'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    items: str
    request: RequiredEndpoint
    at_once: int = Field(default=50, ge=1, le=10_000)
    joined_by: str = "|"
    rows: str = "results"
    key_path: str = "id"
    total: str = "total"

    def address(self, key: str) -> str:
        return self.items.replace("{key}", quote(key, safe=""))

    def key_of(self, url: str) -> str | None:
        """Return the key of the item at ``url``, or None if the address is of another form."""
        before, _, after = self.items.partition("{key}")
        inner = url[len(before) : len(url) - len(after)]
        if not (url.startswith(before) and url.endswith(after)) or not inner or set(inner) & set("/?&#"):
            return None
        return unquote(inner)

    def model_post_init(self, context: Any, /) -> None:
        del context
        if self.items.count("{key}") != 1:
            raise UsageError("bulk_look_up.items: needs {key}, as in https://example.org/papers/{key}")
        try:
            origin(self.address("key"))
        except UsageError as error:
            raise UsageError(f"bulk_look_up.items: {error}") from None
        template = RequestTemplate("bulk_look_up.request", self.request, ["keys", "size"])
        if "keys" not in template.parts:
            raise UsageError(
                "bulk_look_up.request: needs {keys}, as in https://example.org/papers?ids={keys}"
            )


class HttpSettings(WebSettings):
    """Settings of a source of kind ``http``, whose items are URLs of pages.

    Headers and cookies are sent only to hosts that ``sitemaps``, ``feeds``, ``discover`` or ``secret_hosts``
    name, and to the hosts of items that the user added; not to a host that only a listing names, and not
    after a redirect to another host. ``sitemaps``, ``feeds`` and ``discover`` (start pages) are documents
    that list items; ``follow`` are pages whose links are followed. ``queue_time`` is the longest time in
    seconds that a poll may wait for its host. With ``render``, a browser renders pages before they are
    compared. With ``page_checks``, login forms, captchas and the like in place of a page are no change of it.
    With ``bulk_look_up``, one request polls many items that are records of an API."""

    kind: Literal["http"] = "http"
    sitemaps: Texts = ()
    feeds: Texts = ()
    discover: Texts = ()
    follow: Annotated[FollowSettings, BeforeValidator(read_follow)] = FollowSettings()
    secret_hosts: Texts = ()
    max_listings: int = Field(default=1000, ge=1)
    max_items: int = Field(default=100_000, ge=0)
    concurrency: int = Field(default=1, ge=1)
    queue_time: Seconds = 30.0
    accept_encoding: str = "gzip, deflate"
    connect_timeout: PositiveSeconds = 10.0
    idle_timeout: PositiveSeconds = 20.0
    least_rate: SizeRate = 1000.0
    max_ratio: float = Field(default=200.0, gt=1)
    max_header_size: Size = 8190
    max_headers: int = Field(default=128, ge=8)
    max_redirects: int = Field(default=5, ge=0)
    soft_errors: Texts = ()
    page_checks: bool = True
    render: RenderMode = "never"
    browser: str = ""
    browser_memory: Size = 1_000_000_000
    render_wait: str = ""
    render_scrolls: int = Field(default=5, ge=0, le=1000)
    render_loads: tuple[Literal["image", "font", "media"], ...] = ()
    render_state: str = Field(default="", repr=False)
    bulk_look_up: HttpBulkSettings | None = Field(default=None, repr=False)

    @property
    def lists_items(self) -> bool:
        return bool(self.sitemaps or self.feeds or self.discover or self.follow.start)

    @property
    def polls_at_once(self) -> int:
        return self.concurrency

    def refusal(self, key: str) -> str:
        """Return why a page is refused: its address is private, and private ones are not allowed. A name may
        lead to a private address too, which only the poll shows.

        >>> HttpSettings(name="web").refusal("http://127.0.0.1/").partition(" (allowed by ")[0]
        'refused: 127.0.0.1 is a loopback address'
        """
        problem = address_problem(urlsplit(key).hostname or "", allow_private=self.allow_private)
        return with_remedy(f"refused: {problem}", self.name) if problem else ""

    @property
    def access_fingerprint(self) -> str:
        """See ``SourceSettings``. The text contains the names of headers and cookies, not their values."""
        names = [*sorted(self.headers), *sorted(self.cookies)]
        own = bool(self.proxy), self.user_agent, *names, *sorted(self.secret_hosts)
        rules = self.follow.model_dump_json() if self.follow.start else ""
        return repr((self.allow_private, self.respect_robots, *own)) + rules

    @property
    def limits(self) -> ResponseLimits:
        return ResponseLimits(
            self.connect_timeout,
            self.idle_timeout,
            self.timeout,
            self.max_size,
            self.max_ratio,
            self.max_header_size,
            self.max_headers,
            self.least_rate,
        )

    @property
    def politeness(self) -> Politeness:
        return Politeness(self.delay, self.concurrency, self.first_rest, self.longest_rest, self.quota_rule)

    @property
    def render_rules(self) -> RenderRules:
        blocked = frozenset({"image", "font", "media"}) - set(self.render_loads)
        return RenderRules(
            BrowserRules(self.browser, self.browser_memory, self.allow_private),
            VisitRules(self.render_wait, self.render_scrolls, blocked),
            self.render_state,
        )

    @property
    def secret_origins(self) -> frozenset[str]:
        """The origins (``https://example.org``) that the settings name, to which headers and cookies are
        sent. A name of ``secret_hosts`` without ``http://`` stands for https.

        >>> settings = HttpSettings(name="web", feeds=("http://a.test/feed",), secret_hosts=("b.test",))
        >>> sorted(settings.secret_origins)
        ['http://a.test', 'https://b.test']
        """
        found = {origin(host if "://" in host else f"https://{host}") for host in self.secret_hosts}
        for url in (*self.sitemaps, *self.feeds, *self.discover, *self.follow.start):
            with suppress(UsageError):  # reading that document reports the mistake
                found.add(origin(url))
        return frozenset(found)

    @property
    def error_patterns(self) -> tuple[LinearPattern, ...]:
        return tuple(compile_pattern("soft_errors", pattern) for pattern in self.soft_errors)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        _ = self.error_patterns
        if self.render != "never" and self.proxy:
            raise UsageError("render and proxy exclude each other: the browser has a proxy of its own")
        if self.render_wait:
            check_css_selector("render_wait", self.render_wait)
        if self.render_state and not Path(self.render_state).is_file():
            raise UsageError(f"render_state: there is no file {self.render_state}")
        try:
            _ = self.secret_origins
        except UsageError as error:
            raise UsageError(f"secret_hosts: {error}") from None
        for encoding in re.split(r"[,\s]+", self.accept_encoding):
            if encoding and encoding not in ENCODINGS:
                raise UsageError(f"accept_encoding: cannot read {encoding!r}, only {', '.join(ENCODINGS)}")


def secret_headers(settings: HttpSettings, resolver: Resolver) -> dict[str, Secret]:
    """Return the headers that are sent only to the host of the item. Cookies form one header.

    >>> settings = HttpSettings(name="web", headers={"x-key": "env:KEY"}, cookies={"a": "1", "b": "2"})
    >>> headers = secret_headers(settings, {"KEY": "hunter2"}.get)
    >>> headers, headers["X-Key"].reveal(), headers["Cookie"].reveal()
    ({'X-Key': Secret(•••), 'Cookie': Secret(•••)}, 'hunter2', 'a=1; b=2')
    """
    # All names are spelt like the default headers, so that they replace them.
    headers = {
        name.title(): _resolve(settings, f"header {name}", value, resolver)
        for name, value in settings.headers.items()
    }
    if settings.cookies:
        cookies = _cookies(settings, resolver)
        headers["Cookie"] = Secret("; ".join(f"{name}={cookie.reveal()}" for name, cookie in cookies.items()))
    for name, secret in headers.items():
        text = name + secret.reveal()
        if not (text.isascii() and text.isprintable()) or ":" in name or " " in name:
            raise UsageError(
                f"source {settings.name!r}, header {name}: cannot be sent, give plain ASCII in one line"
            )
    return headers


def secret_proxy(settings: HttpSettings, resolver: Resolver) -> Secret | None:
    """Return the URL of the proxy, or None without a proxy. The error for a wrong URL does not show it."""
    if not settings.proxy:
        return None
    proxy = _resolve(settings, "proxy", settings.proxy, resolver)
    try:
        parts = urlsplit(proxy.reveal())
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise UsageError(
            f"source {settings.name!r}, proxy: not an address such as http://user:password@host:3128"
        )
    return proxy


def make_fetcher(settings: HttpSettings, context: SourceContext) -> Fetcher:
    """Return the fetcher that these settings choose: that of the context, with a browser if they render."""
    proxy = secret_proxy(settings, context.resolver)
    plain = context.new_fetcher(settings.allow_private, proxy, context.clock)
    if settings.render == "never":
        return plain
    from afresh.sources.http.rendering.rendering_fetcher import RenderingFetcher

    return RenderingFetcher(plain, settings.render_rules, context.clock)


def all_secrets(settings: HttpSettings, resolver: Resolver) -> list[Secret]:
    """Return all secrets of a source, and the parts of them that messages must not show either."""
    secrets = [*secret_headers(settings, resolver).values(), *_cookies(settings, resolver).values()]
    proxy = secret_proxy(settings, resolver)
    if proxy is not None:
        password = urlsplit(proxy.reveal()).password
        secrets += [proxy, *([Secret(password)] if password else [])]
    return secrets


def _cookies(settings: HttpSettings, resolver: Resolver) -> dict[str, Secret]:
    return {
        name: _resolve(settings, f"cookie {name}", value, resolver)
        for name, value in settings.cookies.items()
    }


def _resolve(settings: HttpSettings, what: str, value: str, resolver: Resolver) -> Secret:
    return resolve(f"source {settings.name!r}, {what}", value, resolver)

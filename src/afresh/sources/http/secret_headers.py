"""The secret headers, cookies and proxy of an HTTP source: resolved, checked, and never shown."""

from __future__ import annotations

from urllib.parse import urlsplit

from afresh.sources.http.settings import HttpSettings
from afresh.sources.secrets import Resolver, Secret, resolve
from afresh.values.errors import UsageError


def secret_headers(settings: HttpSettings, resolver: Resolver) -> dict[str, Secret]:
    """Return the headers, with cookies, of every request to an item's own host.

    >>> settings = HttpSettings(name="web", headers={"x-key": "env:KEY"}, cookies={"a": "1", "b": "2"})
    >>> headers = secret_headers(settings, {"KEY": "hunter2"}.get)
    >>> headers, headers["X-Key"].reveal(), headers["Cookie"].reveal()
    ({'X-Key': Secret(•••), 'Cookie': Secret(•••)}, 'hunter2', 'a=1; b=2')
    """
    # Names get one spelling, so that these headers replace the default ones.
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
                f"source {settings.name!r}, header {name}: not sendable, give plain ASCII in one line"
            )
    return headers


def secret_proxy(settings: HttpSettings, resolver: Resolver) -> Secret | None:
    """Return the address of the proxy, if there is one; a wrong one is refused without being shown."""
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


def all_secrets(settings: HttpSettings, resolver: Resolver) -> list[Secret]:
    """Return everything that must be hidden in messages, whole and in parts."""
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

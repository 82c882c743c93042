"""The secrets of an HTTP source: headers, cookies and proxy, resolved and checked, never shown."""

from __future__ import annotations

from urllib.parse import urlsplit

from afresh.sources.secrets import Resolver, Secret, resolve
from afresh.sources.settings import HttpSettings
from afresh.values.errors import UsageError


def secret_headers(settings: HttpSettings, resolver: Resolver) -> dict[str, Secret]:
    """The headers to send with every request to an item's own host, cookies among them.

    >>> settings = HttpSettings(name="web", headers={"x-key": "env:KEY"}, cookies={"a": "1", "b": "2"})
    >>> headers = secret_headers(settings, {"KEY": "hunter2"}.get)
    >>> headers, headers["X-Key"].reveal(), headers["Cookie"].reveal()
    ({'X-Key': Secret(•••), 'Cookie': Secret(•••)}, 'hunter2', 'a=1; b=2')
    """
    # Names in one spelling, so that what is set here replaces what would be sent otherwise.
    headers = {
        name.title(): _resolved(settings, f"header {name}", value, resolver)
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
    """The proxy's address, if there is one; a wrong one is refused without being shown."""
    if not settings.proxy:
        return None
    proxy = _resolved(settings, "proxy", settings.proxy, resolver)
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
    """Everything that must be blanked out of messages, the parts of which are secret on their own as well."""
    secrets = [*secret_headers(settings, resolver).values(), *_cookies(settings, resolver).values()]
    proxy = secret_proxy(settings, resolver)
    if proxy is not None:
        password = urlsplit(proxy.reveal()).password
        secrets += [proxy, *([Secret(password)] if password else [])]
    return secrets


def _cookies(settings: HttpSettings, resolver: Resolver) -> dict[str, Secret]:
    return {
        name: _resolved(settings, f"cookie {name}", value, resolver)
        for name, value in settings.cookies.items()
    }


def _resolved(settings: HttpSettings, what: str, value: str, resolver: Resolver) -> Secret:
    return resolve(f"source {settings.name!r}, {what}", value, resolver)

"""Decides who can reach the dashboard, and whether it needs a token. This does not need the extra ``web``."""

from __future__ import annotations

import ipaddress

from afresh.values.errors import UsageError


def needs_token_to_read(host: str, setting: bool | None) -> bool:
    """Return whether reading needs the token: as ``setting`` says or, if it is None, if other machines can
    reach ``host``.

    >>> needs_token_to_read("127.0.0.1", None), needs_token_to_read("0.0.0.0", None)
    (False, True)
    """
    return not is_loopback(host) if setting is None else setting


def check_reach(host: str, token: str | None, read_token: bool | None = None) -> None:
    """Raise ``UsageError`` if there is no token, but other machines can reach ``host``, or reading needs it.

    >>> check_reach("127.0.0.1", None)
    >>> check_reach("0.0.0.0", None)
    Traceback (most recent call last):
    afresh.values.errors.UsageError: [web] host '0.0.0.0' can be reached from elsewhere: that needs a token, \
in web.token or [web] token
    """
    if token is None and not is_loopback(host):
        raise UsageError(
            f"[web] host {host!r} can be reached from elsewhere: that needs a token, "
            "in web.token or [web] token"
        )
    if token is None and read_token:
        raise UsageError("[web] read_token needs a token, in web.token or [web] token")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("example.org")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

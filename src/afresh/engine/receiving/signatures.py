"""Checks the signatures of requests that other servers send, in times that do not depend on their content.

hex        ``HEX``, or ``sha256=HEX`` as GitHub and WebSub write it: the HMAC of the body
base64     the HMAC of the body, as Shopify writes it
timestamp  ``t=SECONDS,v1=HEX`` as Stripe writes it: the HMAC of ``SECONDS.`` and the body
token      the secret itself, as GitLab writes it: it signs nothing, and is only as good as TLS
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
from collections import OrderedDict

from afresh.engine.settings.receiver_rules import SignatureScheme

_MOST_REMEMBERED = 10_000
_LONGEST_SIGNATURE = 1000


def is_signed(
    given: str, secret: str, body: bytes, scheme: SignatureScheme = "hex", algorithm: str = "sha256"
) -> bool:
    """Return whether ``given`` is the signature of ``body`` with ``secret``.

    >>> import hashlib, hmac
    >>> signature = hmac.new(b"secret", b"body", hashlib.sha256).hexdigest()
    >>> is_signed(f"sha256={signature}", "secret", b"body"), is_signed(signature, "secret", b"Body")
    (True, False)
    """
    if len(given) > _LONGEST_SIGNATURE:
        return False
    if scheme == "token":
        return _is_equal(given, secret)
    if scheme == "base64":
        return _is_equal(given.strip(), base64.b64encode(_digest(secret, body, algorithm)).decode())
    if scheme == "timestamp":
        time, signatures = _parts(given)
        wanted = _digest(secret, f"{time}.".encode() + body, algorithm).hex()
        return sum(_is_equal(signature, wanted) for signature in signatures) > 0  # which one fits is not told
    name, equals, signature = given.strip().rpartition("=")
    is_named = name.lower() == algorithm if equals else True
    return is_named and _is_equal(signature.lower(), _digest(secret, body, algorithm).hex())


def signed_time_s(given: str) -> float | None:
    """Return the time of a signature of the scheme ``timestamp``, in Unix seconds; None without one.

    >>> signed_time_s("t=12,v1=ab"), signed_time_s("v1=ab")
    (12.0, None)
    """
    time = signed_time(given)
    return float(time) if time.isascii() and time.isdigit() and len(time) < 16 else None


def signed_time(given: str) -> str:
    """Return the time of a signature of the scheme ``timestamp`` as it was signed; empty without one."""
    return _parts(given)[0]


def _parts(given: str) -> tuple[str, list[str]]:
    """Return the time and the signatures of the scheme ``timestamp``."""
    pairs = [part.strip().partition("=")[::2] for part in given.split(",")]
    time = next((value for name, value in pairs if name == "t"), "")
    return time, [value.lower() for name, value in pairs if name == "v1"]


def _digest(secret: str, body: bytes, algorithm: str) -> bytes:
    return hmac.new(secret.encode(), body, getattr(hashlib, algorithm)).digest()


def _is_equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), wanted.encode())


class Replays:
    """Remembers what was received lately, so that a request that somebody recorded is not taken again. It
    remembers at most ``_MOST_REMEMBERED`` requests, those of this process. Any thread may use it.

    >>> replays = Replays()
    >>> [replays.is_new(now_s, 300.0, b"shop", b"body") for now_s in (0.0, 299.0, 301.0)]
    [True, False, True]
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, float] = OrderedDict()  # the end of its time, by its digest
        self._lock = threading.Lock()

    def is_new(self, now_s: float, remember_s: float, *signed: bytes) -> bool:
        """Return whether a request was not received within ``remember_s`` seconds, and remember it. A request
        is recognised by what is ``signed``: the same signature can be written in many ways."""
        digest = _digest_of(signed)
        with self._lock:
            if self._seen.get(digest, 0.0) > now_s:
                return False
            self._seen[digest] = now_s + remember_s
            self._seen.move_to_end(digest)
            while len(self._seen) > _MOST_REMEMBERED:
                self._seen.popitem(last=False)
        return True

    def forget(self, *signed: bytes) -> None:
        """Forget a request that could not be taken, so that its sender may send it again."""
        with self._lock:
            self._seen.pop(_digest_of(signed), None)


def _digest_of(parts: tuple[bytes, ...]) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(len(part).to_bytes(8) + part)
    return found.digest()

"""Signatures in the shapes of GitHub, Stripe, Shopify and GitLab, and requests that come again."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.engine.receiving import signatures
from afresh.engine.receiving.signatures import Replays, is_signed, signed_time_s

# The example of GitHub's documentation ("Validating webhook deliveries").
GITHUB_SECRET, GITHUB_BODY = "It's a Secret to Everybody", b"Hello, World!"
GITHUB = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"


def sign(body: bytes, algorithm: str = "sha256") -> bytes:
    return hmac.new(b"secret", body, getattr(hashlib, algorithm)).digest()


def stripe(time: str, body: bytes) -> str:
    return f"t={time},v0=00,v1={sign(time.encode() + b'.' + body).hex()}"


@pytest.mark.parametrize(
    ("given", "more"),
    [
        (sign(b"body").hex(), {}),
        (f"sha256={sign(b'body').hex().upper()}", {}),
        (f"sha1={sign(b'body', 'sha1').hex()}", {"algorithm": "sha1"}),
        (base64.b64encode(sign(b"body")).decode(), {"scheme": "base64"}),
        (stripe("12", b"body"), {"scheme": "timestamp"}),
        ("secret", {"scheme": "token"}),
    ],
)
def test_each_scheme_takes_its_signature_and_no_other(given: str, more: dict[str, Any]) -> None:
    assert is_signed(given, "secret", b"body", **more)
    assert not is_signed(given, "Secret", b"body", **more)
    assert more.get("scheme") == "token" or not is_signed(given, "secret", b"Body", **more)
    for wrong in ("", "=", "sha1=", given[:-1], f"{given}x", "ä" * 10, "x" * 2000, f"sha512={given}"):
        assert not is_signed(wrong, "secret", b"body", **more)


def test_the_example_of_github_is_understood() -> None:
    assert is_signed(GITHUB, GITHUB_SECRET, GITHUB_BODY)


@given(st.text(max_size=60))
def test_whatever_a_header_holds_is_refused_in_peace(text: str) -> None:
    assert not is_signed(text, "secret", b"body")
    assert not is_signed(text, "secret", b"body", "timestamp")
    time_s = signed_time_s(text)
    assert time_s is None or time_s >= 0


def test_a_time_is_part_of_the_signature() -> None:
    assert signed_time_s(stripe("12", b"")) == 12.0
    assert not is_signed(stripe("12", b"body").replace("t=12", "t=13"), "secret", b"body", "timestamp")


def test_what_was_received_is_remembered_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "_MOST_REMEMBERED", 3)
    replays = Replays()
    assert replays.is_new(10.0, 5.0, b"a", b"1")
    assert not replays.is_new(14.0, 5.0, b"a", b"1")
    assert replays.is_new(14.0, 5.0, b"a1", b"")
    assert replays.is_new(15.0, 5.0, b"a", b"1")
    for number in range(3):
        assert replays.is_new(15.0, 5.0, b"%d" % number)
    assert replays.is_new(16.0, 5.0, b"a", b"1")  # it was the oldest of too many
    replays.forget(b"a", b"1")
    assert replays.is_new(16.0, 5.0, b"a", b"1")

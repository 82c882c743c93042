"""Bytes of any encoding become text; decoding never fails."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from afresh.sources.text_decoding import decode, known_codec


@given(st.text(max_size=200), st.sampled_from(["utf-8", "utf-16", "utf-8-sig"]))
@settings(deadline=None)
@example("\x00", "utf-16")
def test_content_is_decoded_by_the_encoding_that_it_declares(text: str, encoding: str) -> None:
    content = text.encode(encoding, "replace")
    clean = content.decode(encoding).removeprefix("\ufeff")
    assert decode(content, f"text/plain; charset={encoding}").removeprefix("\ufeff") == clean


@pytest.mark.parametrize(
    ("content", "media_type", "text"),
    [
        (b'<meta charset="iso-8859-1">\xe9', "text/html", '<meta charset="iso-8859-1">é'),
        (b'<?xml version="1.0" encoding="koi8-r"?>\xc1', "", '<?xml version="1.0" encoding="koi8-r"?>а'),
        (b"\x93quoted\x94", "text/html; charset=latin1", "“quoted”"),
        (b"\xef\xbb\xbfmark", "text/html; charset=latin1", "mark"),
        (b"\xff\xff", "text/html; charset=utf-8", "\ufffd\ufffd"),
        (b"plain", "text/html; charset='", "plain"),
    ],
)
def test_charsets(content: bytes, media_type: str, text: str) -> None:
    assert decode(content, media_type) == text


@pytest.mark.parametrize(
    "label", ["idna", "punycode", "unicode_escape", "base64", "rot13", "zlib", "\x00", "a" * 999]
)
def test_codecs_that_no_page_is_written_in_are_unknown(label: str) -> None:
    assert known_codec(label) is None

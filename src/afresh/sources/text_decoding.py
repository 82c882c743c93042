"""Decode bytes of unknown encoding into text; decoding never fails."""

from __future__ import annotations

import codecs
import re

# UTF-32 is not used on the web; its byte-order mark begins like that of UTF-16.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_IN_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_IN_BODY = re.compile(
    rb"<(?:meta|\?xml)[^>]{0,256}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE
)
_HEAD_BYTES = 2048
_LONGEST_SEQUENCE = 4  # bytes of one character in UTF-8
# Python's text codecs that no page uses; some of them take quadratic time.
_NEVER = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem"})
# What the web calls Latin-1 is Windows-1252 (WHATWG Encoding Standard).
_WEB_ALIASES = {"iso8859-1": "cp1252", "ascii": "cp1252", "iso8859-9": "cp1254", "gb2312": "gb18030"}


def decode(content: bytes, content_type: str = "") -> str:
    """Return the text in ``content``; bytes that cannot be decoded become U+FFFD. The encoding comes from the
    byte-order mark, else from ``content_type`` (the HTTP header), else from a declaration in the content.
    Without any, it is UTF-8, or Windows-1252 if the bytes are not valid UTF-8.

    >>> decode("dérivée".encode("latin-1"), "text/html; charset=ISO-8859-1"), decode(b"caf\\xe9")
    ('dérivée', 'café')
    """
    codec = _stated_encoding(content, content_type)
    if codec is not None:
        return content.decode(codec, "replace")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def encoding_of(start: bytes, content_type: str = "") -> str:
    """Return the codec for a content that begins with ``start``, found as in ``decode``.

    >>> encoding_of(b"\\xef\\xbb\\xbfa"), encoding_of(b"plain"), encoding_of(b"caf\\xe9 au lait")
    ('utf-8-sig', 'utf-8', 'cp1252')
    """
    codec = _stated_encoding(start, content_type)
    if codec is not None:
        return codec
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        is_cut = error.end == len(start) and len(start) - error.start < _LONGEST_SEQUENCE
        return "utf-8" if is_cut else "cp1252"
    return "utf-8"


def _stated_encoding(content: bytes, content_type: str) -> str | None:
    """Return the codec that the content or its type names, or None if they name none."""
    for mark, name in _BOMS:
        if content.startswith(mark):
            return name
    named = _IN_HEADER.search(content_type)
    inside = _IN_BODY.search(content[:_HEAD_BYTES])
    for label in (named and named[1], inside and inside[1].decode("ascii", "replace")):
        codec = known_codec(label) if label else None
        if codec:
            return codec
    return None


def known_codec(label: str) -> str | None:
    """Return Python's codec for a charset name; None if the name is unknown or not a text encoding.

    >>> known_codec("UTF8"), known_codec("zlib"), known_codec("x-klingon")
    ('utf-8', None, None)
    """
    try:
        codec = codecs.lookup(label)
        "".encode(codec.name)  # codecs such as zlib are not text encodings, and raise LookupError
    except (LookupError, ValueError):
        return None
    return None if codec.name in _NEVER else _WEB_ALIASES.get(codec.name, codec.name)

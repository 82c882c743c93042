"""Decompression is right however the stream is cut, and never passes the limits."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.http.decompression import BadEncodingError, Inflater, TooLargeError


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "identity": bytes,
    "": bytes,
}


def inflate(inflater: Inflater, packed: bytes, step: int) -> bytes:
    plain = b"".join(inflater.feed(packed[i : i + step]) for i in range(0, len(packed), step))
    inflater.finish()
    return plain


@given(st.sampled_from(sorted(PACKERS)), st.binary(max_size=3000), st.integers(1, 500))
@settings(deadline=None)
def test_compressed_data_is_restored_however_it_is_cut(encoding: str, data: bytes, step: int) -> None:
    inflater = Inflater(encoding, max_bytes=10_000, max_ratio=1000)
    assert inflate(inflater, PACKERS[encoding](data), step) == data


@given(st.binary(max_size=3000), st.integers(1, 500))
@settings(deadline=None)
def test_deflate_without_its_header_is_understood(data: bytes, step: int) -> None:
    packed = raw_deflate(data)
    looks_like_zlib = len(packed) >= 2 and packed[0] & 15 == 8 and int.from_bytes(packed[:2], "big") % 31 == 0
    if not looks_like_zlib:
        assert inflate(Inflater("deflate", max_bytes=10_000, max_ratio=1000), packed, step) == data


@given(st.binary(max_size=500), st.binary(max_size=500), st.integers(1, 100))
@settings(deadline=None)
def test_gzip_members_may_follow_one_another(one: bytes, two: bytes, step: int) -> None:
    inflater = Inflater("gzip", max_bytes=10_000, max_ratio=1000)
    packed = gzip.compress(one) + gzip.compress(two)
    assert inflate(inflater, packed, step) == one + two


@given(st.integers(0, 200_000), st.integers(1, 100_000), st.integers(1, 5000))
@settings(deadline=None)
def test_the_output_never_exceeds_the_limit(size: int, limit: int, step: int) -> None:
    inflater = Inflater("gzip", max_bytes=limit, max_ratio=1e9)
    packed = gzip.compress(bytes(size))
    out = 0
    try:
        for start in range(0, len(packed), step):
            out += len(inflater.feed(packed[start : start + step]))
    except TooLargeError:
        assert size > limit
    else:
        assert out == size <= limit
    assert out <= limit


def test_a_bomb_below_the_limit_of_size_is_stopped_by_its_ratio() -> None:
    packed = gzip.compress(bytes(20_000_000))
    with pytest.raises(TooLargeError, match="expands more than 200 times"):
        Inflater("gzip", max_bytes=50_000_000, max_ratio=200).feed(packed)


def test_a_short_page_may_be_as_compressible_as_it_likes() -> None:
    page = b"<p></p>" * 100_000
    assert Inflater("gzip", max_bytes=1_000_000, max_ratio=2).feed(gzip.compress(page)) == page


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "\x00"])
def test_encodings_not_asked_for_are_refused(encoding: str) -> None:
    with pytest.raises(BadEncodingError, match="was not asked for"):
        Inflater(encoding, max_bytes=10, max_ratio=10)


@given(st.integers(1, 30))
@settings(deadline=None)
def test_a_body_that_breaks_off_is_noticed(cut: int) -> None:
    packed = gzip.compress(b"the whole of it, all of it")
    inflater = Inflater("gzip", max_bytes=1000, max_ratio=1000)
    inflater.feed(packed[:-cut])
    with pytest.raises(BadEncodingError, match="breaks off"):
        inflater.finish()

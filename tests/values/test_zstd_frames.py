"""Frames hold what was compressed; what is damaged, cut off or too large is refused."""

from __future__ import annotations

import pytest

from afresh.values.zstd_frames import FrameCompressor, decompress_frame, zstd


def test_a_frame_holds_its_content_and_says_how_long_it_is() -> None:
    compressor = FrameCompressor(3)
    for content in (b"", b"a text", bytes(range(256)) * 4_000):
        frame = compressor.compress(content)
        assert decompress_frame(frame, len(content)) == content
        assert zstd.get_frame_info(frame).decompressed_size == len(content)  # afresh 0.1 reads it


@pytest.mark.parametrize("spoil", [lambda frame: frame[:-1], lambda frame: b"x" + frame, lambda _: b""])
def test_a_frame_that_is_not_whole_is_refused(spoil: object) -> None:
    assert callable(spoil)
    with pytest.raises(zstd.ZstdError):
        decompress_frame(spoil(FrameCompressor().compress(b"a text" * 1_000)), 6_000)


def test_a_content_is_not_larger_than_allowed() -> None:
    bomb = FrameCompressor().compress(bytes(10_000_000))
    with pytest.raises(zstd.ZstdError, match="more than 1000 bytes"):
        decompress_frame(bomb, 1_000)

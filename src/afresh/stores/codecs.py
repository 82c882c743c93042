"""Encodes what a store writes: contents are compressed, an observation takes about nine bytes.

A *run* is a sequence of observations of one item. It is encoded as the time of the last observation (int64,
Unix time in µs), then four integers of variable length for each ``Observation``, with all times in µs:

    zigzag(time − previous time) · 4 + audited · 2 + changed
    zigzag(elapsed − (time − previous time))      almost always 0
    0 if modified is None, else 1 + zigzag(time − modified)
    0 if count is None, else 1 + count

For the first observation of a run, the previous time is 0, and its elapsed time is stored as it is. An
integer has seven bits per byte, the lowest bits first; the eighth bit is set if more bytes of this integer
follow. So one pass over the bytes of millions of runs finds where all integers end. ``zigzag`` maps positive
and negative integers to integers of 0 or more.

>>> first = [Observation(7, 86400.0, 0.0, False), Observation(7, 172800.0, 86400.0, True)]
>>> run = append_observations(None, first)
>>> len(append_observations(run, [Observation(7, 259200.0, 86400.0, True)])) - len(run)
9
>>> found = decode_runs([7], [run])
>>> found.time_s.tolist(), found.elapsed_s.tolist(), found.changed.tolist()
([86400.0, 172800.0], [0.0, 86400.0], [False, True])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from struct import Struct

import numpy as np
import numpy.typing as npt

from afresh.values.errors import StoreCorruptError
from afresh.values.outcome import Observation
from afresh.values.stored import Ids, ObservationColumns
from afresh.values.zstd_frames import FrameCompressor, decompress_frame, zstd

Unsigned = npt.NDArray[np.uint64]
_LAST = Struct("<q")
_FIELDS = 4
_CONTINUED = bytes(range(128, 256))


def content_hash(content: bytes) -> bytes:
    """Return the hash under which the bytes of a copy are stored (BLAKE2b, 256 bits).

    >>> content_hash(b"").hex()[:16]
    '0e5751c026e543b2'
    """
    return blake2b(content, digest_size=32).digest()


def compress_text(text: str) -> bytes:
    """Return a text in the form in which a store keeps it.

    >>> decompress_text(compress_text("a text"), "store")
    'a text'
    """
    return FrameCompressor().compress(text.encode("utf-8", "replace"))


def decompress_text(data: bytes, store: str) -> str:
    """Return the text that ``compress_text`` encoded. ``store`` is the store's name for the error message."""
    try:
        return zstd.decompress(data).decode()
    except (zstd.ZstdError, ValueError) as error:
        raise StoreCorruptError(f"{store}: a text that it keeps is damaged: {error}") from None


def decompress(data: bytes, size: int, expected_hash: bytes, store: str) -> bytes:
    """Return the decompressed content of ``size`` bytes, or raise ``StoreCorruptError`` if its hash differs
    from ``expected_hash``. ``store`` is the store's name for the error message."""
    short_hash = expected_hash.hex()[:16]
    try:
        content = decompress_frame(data, size)
    except zstd.ZstdError as error:
        raise StoreCorruptError(f"{store}: content {short_hash} cannot be unpacked: {error}") from error
    if content_hash(content) != expected_hash:
        raise StoreCorruptError(f"{store}: content {short_hash} is not what was stored")
    return content


def append_observations(run: bytes | None, observations: Iterable[Observation]) -> bytes:
    """Return the encoded run with these observations appended; if ``run`` is None, start a new run."""
    packed = bytearray(run or _LAST.pack(0))
    (last,) = _LAST.unpack_from(packed)
    for seen in observations:
        time = _microseconds(seen.time_s)
        # The first observation of a run has no previous one: its time and elapsed time are stored in full.
        step = time - last
        expected = step if len(packed) > _LAST.size else 0
        _append_integer(packed, _zigzag(step) << 2 | seen.audit << 1 | seen.changed)
        _append_integer(packed, _zigzag(_microseconds(seen.elapsed_s) - expected))
        _append_integer(
            packed, 0 if seen.modified_s is None else 1 + _zigzag(time - _microseconds(seen.modified_s))
        )
        _append_integer(packed, 0 if seen.count is None else 1 + seen.count)
        last = time
    _LAST.pack_into(packed, 0, last)
    return bytes(packed)


def count_observations(run: bytes) -> int:
    return len(run[_LAST.size :].translate(None, _CONTINUED)) // _FIELDS


def last_time_us(run: bytes) -> int:
    last: int = _LAST.unpack_from(run)[0]
    return last


def decode_runs(item_ids: Sequence[int], runs: Sequence[bytes]) -> ObservationColumns:
    """Return the observations of all runs, sorted by item and time. Run i belongs to ``item_ids[i]``."""
    bodies = [run[_LAST.size :] for run in runs]
    numbers, ends = _decode_integers(b"".join(bodies))
    bounds = np.cumsum([len(body) for body in bodies], dtype=np.int64)
    per_run = np.diff(np.searchsorted(ends, bounds - 1, side="right"), prepend=0) // _FIELDS
    field = numbers.reshape(-1, _FIELDS)
    step = _unzigzag(field[:, 0] >> np.uint64(2))
    full = per_run[per_run > 0]
    first = np.zeros(step.size, dtype=bool)
    first[np.cumsum(full) - full] = True
    # The sum runs over all runs and may overflow. Subtracting the sum before each run overflows in the same
    # way, so the difference is exact.
    total = np.cumsum(step)
    time = total - np.repeat((total - step)[first], full)
    elapsed = _unzigzag(field[:, 1]) + np.where(first, 0, step)
    modified = time - _unzigzag(field[:, 2] - np.uint64(1))
    item_id = np.repeat(np.asarray(item_ids, dtype=np.int64), per_run)
    columns = ObservationColumns(
        item_id=item_id,
        time_s=time / 1e6,
        elapsed_s=elapsed / 1e6,
        changed=(field[:, 0] & np.uint64(1)).astype(bool),
        modified_s=np.where(field[:, 2] == 0, np.nan, modified / 1e6),
        count=np.where(field[:, 3] == 0, np.nan, (field[:, 3] - np.uint64(1)).astype(np.float64)),
        audit=(field[:, 0] & np.uint64(2)).astype(bool),
    )
    return _sort_by_item_and_time(columns, time)


def _sort_by_item_and_time(columns: ObservationColumns, time: Ids) -> ObservationColumns:
    item_id = columns.item_id
    # Runs are almost always in order already, and to check this is much faster than to sort.
    same = item_id[1:] == item_id[:-1]
    if np.all((item_id[1:] > item_id[:-1]) | (same & (time[1:] >= time[:-1]))):
        return columns
    order = np.lexsort((time, item_id))
    return ObservationColumns(*(getattr(columns, name)[order] for name in ObservationColumns.__slots__))


def _decode_integers(data: bytes) -> tuple[Unsigned, Ids]:
    """Return a tuple: all integers in ``data``, and for each the index of its last byte in ``data``."""
    octets = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(octets < 128).astype(np.int64)
    if ends.size == 0:
        return np.zeros(0, dtype=np.uint64), ends
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1] + 1])
    place = np.arange(octets.size) - np.repeat(starts, ends - starts + 1)
    parts = (octets & 127).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.add.reduceat(parts, starts), ends


def _append_integer(packed: bytearray, number: int) -> None:
    while number > 127:
        packed.append(number & 127 | 128)
        number >>= 7
    packed.append(number)


def _zigzag(number: int) -> int:
    """Map a positive or negative integer to an integer of 0 or more: 0, −1, 1, −2 … become 0, 1, 2, 3 …"""
    return number << 1 if number >= 0 else (-number << 1) - 1


def _unzigzag(number: Unsigned) -> Ids:
    half = (number >> np.uint64(1)).astype(np.int64)
    return np.where(number & np.uint64(1), ~half, half)


def _microseconds(seconds: float) -> int:
    return round(seconds * 1e6)

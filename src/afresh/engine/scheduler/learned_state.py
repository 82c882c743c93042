"""What the policy learned of all items together, as one value of the store."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import zstandard

from afresh.engine.state_names import LEARNED
from afresh.policy.adaptive.saved_state import VERSION, Arrays
from afresh.stores.store import Store

_LEVEL = 3
_MOST_BYTES = 1 << 30


def pack_learned(shared: Arrays) -> bytes:
    """Return the state as the store keeps it.

    >>> unpack_learned(pack_learned({"version": np.array(VERSION)}))
    {'version': array(1)}
    """
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **shared)
    return zstandard.ZstdCompressor(level=_LEVEL).compress(file.getvalue())


def unpack_learned(packed: bytes | None) -> Arrays | None:
    """Return the state that was stored; None without one, or if another version wrote it."""
    if not packed:
        return None
    try:
        plain = zstandard.ZstdDecompressor().decompress(packed, max_output_size=_MOST_BYTES)
        with np.load(io.BytesIO(plain), allow_pickle=False) as saved:
            shared = {name: saved[name] for name in saved.files}
    except (zstandard.ZstdError, zipfile.BadZipFile, ValueError, OSError):
        return None
    return shared if int(shared.get("version", np.array(0))) == VERSION else None


def read_learned_state(store: Store) -> Arrays | None:
    return unpack_learned(store.state.get(LEARNED))

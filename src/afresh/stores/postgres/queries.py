"""SQL of this package, block by block."""

from __future__ import annotations

from afresh.stores import blocks


def load_blocks(file: str) -> dict[str, str]:
    """The blocks of a file of this package."""
    return blocks.load_blocks(__package__, file)

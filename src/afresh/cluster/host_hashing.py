"""Assigns whole hosts to shards by rendezvous hashing.

Every pair of a host and a shard has a pseudo-random number, and the host belongs to the shard with the
highest one (Thaler & Ravishankar 1998). If a shard is added, only the hosts that it gets move: about one in n
of n shards. If one is removed, only its own hosts move. No table of hosts is needed: every process computes
the same owner from the host's name and the numbers of the shards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

_BLOCK = 4096  # hosts that are assigned in one step
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHARD_STEP = 0x9E3779B97F4A7C15


def assign_hosts(hosts: Sequence[str], shards: Sequence[int]) -> list[int]:
    """Return for each host the number of its shard.

    >>> hosts = [f"host-{number}.example" for number in range(1000)]
    >>> before, after = assign_hosts(hosts, range(4)), assign_hosts(hosts, range(5))
    >>> moved = [new for old, new in zip(before, after) if old != new]
    >>> set(moved), 150 < len(moved) < 250
    ({4}, True)
    """
    numbers = np.array(sorted(shards), dtype=np.int64)
    if not numbers.size:
        raise ValueError("there are no shards to assign hosts to")
    salt = _mix(np.array([(int(shard) + 1) * _SHARD_STEP % 2**64 for shard in numbers], dtype=np.uint64))
    found: list[int] = []
    for begin in range(0, len(hosts), _BLOCK):
        keys = np.array([_hash(host) for host in hosts[begin : begin + _BLOCK]], dtype=np.uint64)
        weights = _mix(keys[:, None] ^ salt)
        found += numbers[weights.argmax(axis=1)].tolist()
    return found


def _hash(host: str) -> int:
    return int.from_bytes(blake2b(host.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _mix(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a hash of each 64-bit number: the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    return bits ^ (bits >> np.uint64(31))


def large_hosts(items: Mapping[str, int], shards: int) -> list[str]:
    """Return the hosts that have more items than a shard would have if all shards were of one size, the
    largest first. Such a host stays whole, so that its shard is larger than the others.

    >>> large_hosts({"a": 60, "b": 30, "c": 10}, 2)
    ['a']
    """
    fair = sum(items.values()) / max(shards, 1)
    return sorted((host for host, count in items.items() if count > fair), key=lambda host: -items[host])

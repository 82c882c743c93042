"""Several processes on one file, and processes killed while they write."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
from tests.slow_cases import with_slow_cases
from tests.stores.backends import belief_of, new_items

from afresh.stores.sqlite.store import SqliteStore

# Polls whatever is due, for ever, and says each item once its outcome is committed.
WRITER = """
import sys
from pathlib import Path
from afresh.stores.sqlite.store import SqliteStore
from afresh.values.outcome import NewCopy, Observation, Outcome, Spent

path, start = Path(sys.argv[1]), float(sys.argv[2])
with SqliteStore(path, timeout_s=60.0) as store:
    now = start
    while leases := store.leases.take(store.items.due(now, 5), now, 10.0):
        now += 100.0
        outcomes = []
        for lease in leases:
            content = f"{lease.key} at {now}".encode() * 50
            observation = Observation(lease.item_id, now, 1.0, changed=True)
            copy = NewCopy(content, "text/plain", content[:20])
            more = {"belief": content[:9], "spent": Spent(1), "event": "changed"}
            outcomes.append(Outcome(lease, now, now, observation, copy, **more))
        assert store.commit(outcomes, {"last": str(now).encode()}) == []
        for lease in leases:
            print(lease.key, now, flush=True)
"""

# Leases what is due until nothing is left, committing nothing.
LEASER = """
import sys
from pathlib import Path
from afresh.stores.sqlite.store import SqliteStore

with SqliteStore(Path(sys.argv[1]), timeout_s=60.0) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    while due := store.items.due(1.0, 3):
        for lease in store.leases.take(due, 1.0, 60.0):
            print(lease.item_id, lease.token)
"""

OPENER = """
import sys
from pathlib import Path
from afresh.stores.sqlite.store import SqliteStore
from afresh.values.items import NewItem

print("ready", flush=True)
sys.stdin.readline()
with SqliteStore(Path(sys.argv[1]), timeout_s=60.0) as store:
    store.items.add([NewItem(f"k{i}", "web", "host") for i in range(50)], 0.0)
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Another Python."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def stream(pipe: IO[str] | None) -> IO[str]:
    """The pipe that was asked for."""
    assert pipe is not None
    return pipe


def parse(line: str) -> tuple[str, float]:
    """What a writer said: item and time."""
    key, time = line.split()
    return key, float(time)


@pytest.mark.parametrize("seed", with_slow_cases(range(4), kept=2))
def test_a_writer_killed_at_any_moment_loses_nothing_it_acknowledged(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "store.db"
    with SqliteStore(path) as store:
        store.items.add(new_items(20), 0.0)
    chance = random.Random(seed)
    told: list[tuple[str, float]] = []
    for life in range(2):
        # The second life comes long after the leases of the first have run out.
        with start(WRITER, path, 1e6 * life) as writer:
            output = stream(writer.stdout)
            told += [parse(output.readline()) for _ in range(chance.randrange(1, 400))]
            writer.kill()
            told += [parse(line) for line in output if line.endswith("\n")]
    with SqliteStore(path) as store:
        assert store.upkeep.check() == []
        newest = dict(told)
        for key, time in newest.items():
            item = store.items.get(key)
            assert item is not None
            assert item.polled_s is not None
            # What was in flight may have been committed without being told.
            assert item.polled_s >= time
            copy = store.copies.get(item.id)
            assert copy is not None
            assert copy.content == f"{key} at {item.polled_s}".encode() * 50
            assert copy.version.time_s == item.polled_s == item.due_s
            assert item.polls >= sum(name == key for name, _ in told)
            belief = belief_of(store.plan.columns_of([item.id]), 0)
            assert belief == copy.content[:9]
        spent = store.ledger.total(0.0, 1e9).requests
        assert spent == sum(item.polls for item in store.items.by_id(range(1, 21)))
        assert store.events.waiting() == spent >= len(told)
        state = store.state.get("last")
        assert state is not None
        assert float(state) >= max(time for _, time in told)


def test_two_processes_never_lease_the_same_item(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore(path) as store:
        store.items.add(new_items(300), 0.0)
    with start(LEASER, path) as one, start(LEASER, path) as two:
        for process in (one, two):
            assert stream(process.stdout).readline() == "ready\n"
        for process in (one, two):
            stream(process.stdin).write("go\n")
            stream(process.stdin).flush()
        outputs = [stream(process.stdout).read().split() for process in (one, two)]
    ids = [int(word) for words in outputs for word in words[::2]]
    assert sorted(ids) == list(range(1, 301))
    tokens = [set(words[1::2]) for words in outputs]
    assert tokens[0].isdisjoint(tokens[1])


def test_processes_that_make_a_store_at_once_make_one(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    processes = [start(OPENER, path) for _ in range(3)]
    for process in processes:
        assert stream(process.stdout).readline() == "ready\n"
    for process in processes:
        stream(process.stdin).write("go\n")
        stream(process.stdin).flush()
    for process in processes:
        with process:
            assert stream(process.stdout).read() == ""
        assert process.returncode == 0
    with SqliteStore(path) as store:
        assert sum(count.items for count in store.items.counts()) == 50
        assert store.upkeep.check() == []

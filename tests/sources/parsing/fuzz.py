"""Looks for inputs that cost a parser much time or memory, or break it, for as long as one likes:

    python -m tests.sources.parsing.fuzz MINUTES [PARSER ...]        (make fuzz MINUTES=60)

Each parser gets turns of some seconds in a process of its own. Inputs are made of what attackers repeat, or
from the costliest inputs so far, by changing them: so the search climbs towards expensive inputs. An input is
a finding if it takes more than 2 s or 150 MB, if the parser raises an exception, or if its process ends.
Findings are written to build/fuzz; the exit code is 1 if there are some.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.sources.parsing import costly
from tests.sources.parsing.attacks import PARSERS, UNITS, found_in_the_wild

from afresh.sources.parsing.parse_budget import SMALL_BYTES

MOST_S, MOST_BYTES = 2.0, 150_000_000
_HANGS_S = 20.0
_KEPT = 20  # of the costliest inputs
_MOST_FINDINGS = 5  # of one parser
FINDINGS = Path("build/fuzz")


@dataclass
class Searched:
    """What was found of one parser. ``costly`` are tuples (seconds, input) of its costliest inputs."""

    inputs: int = 0
    longest_s: float = 0.0
    most_bytes: int = 0
    costly: list[tuple[float, bytes]] = field(default_factory=list)
    findings: list[tuple[str, bytes]] = field(default_factory=list)


def parser_named(name: str) -> Callable[[bytes], Any]:
    """Return a parser, or one of the functions of ``costly`` that break it on purpose."""
    found: Callable[[bytes], Any] = PARSERS.get(name) or getattr(costly, name)
    return found


def make_input(chance: random.Random, kept: list[tuple[float, bytes]]) -> bytes:
    """Return an input: a new one, or a changed copy of a costly one."""
    if not kept or chance.random() < 0.3:
        parts = []
        for _ in range(chance.randint(1, 4)):
            unit = b"".join(chance.choices(UNITS, k=chance.randint(1, 3)))
            parts.append(unit * (chance.randint(1, SMALL_BYTES) // len(unit) + 1))
        return b"".join(parts)[:SMALL_BYTES]
    data = chance.choice(kept)[1]
    for _ in range(chance.randint(1, 3)):
        start = chance.randint(0, len(data))
        end = min(len(data), start + int(chance.expovariate(1 / 40)))
        piece = chance.choice(
            (
                chance.choice(UNITS),
                data[start:end] * 2,
                b"",
                chance.randbytes(3),
                chance.choice(kept)[1][start:end],
            )
        )
        data = data[:start] + piece + data[end:]
        if chance.random() < 0.2:  # the more of it, the more it costs
            data = data[: SMALL_BYTES // 2] * 2
    return data[:SMALL_BYTES]


def turn(
    name: str, seconds: float, seed: int, kept: list[tuple[float, bytes]], current: Any, out: Connection
) -> None:
    """Search for ``seconds`` in this process. ``current`` holds the input under way, for the case that the
    process ends; what was found is sent to ``out``."""
    parser, chance, found = parser_named(name), random.Random(seed), Searched(costly=list(kept))
    space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (space + 600_000_000, resource.RLIM_INFINITY))
    first, end_s = list(found_in_the_wild(SMALL_BYTES)) if not kept else [], time.monotonic() + seconds
    while time.monotonic() < end_s and len(found.findings) < _MOST_FINDINGS:
        data = first.pop()[:SMALL_BYTES] if first else make_input(chance, found.costly)
        current.raw = len(data).to_bytes(8) + data + bytes(SMALL_BYTES - len(data))
        problem = _judge(parser, data, found)
        if problem:
            found.findings.append((problem, data))
    out.send(found)


def _judge(parser: Callable[[bytes], Any], data: bytes, found: Searched) -> str:
    """Parse an input; return why it is a finding, or "" if it is none."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak of the memory begins anew
    before, start_s, problem = _memory("VmRSS:"), time.process_time(), ""
    signal.setitimer(signal.ITIMER_PROF, _HANGS_S)
    try:
        parser(data)
    except Exception as error:  # noqa: BLE001  (any is a finding)
        problem = f"{type(error).__name__}: {error}"[:300]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    taken_s, taken = time.process_time() - start_s, _memory("VmHWM:") - before
    found.inputs += 1
    found.longest_s, found.most_bytes = max(found.longest_s, taken_s), max(found.most_bytes, taken)
    if len(found.costly) < _KEPT or taken_s > found.costly[-1][0]:
        found.costly = sorted([*found.costly, (taken_s, data)], reverse=True)[:_KEPT]
    if taken_s > MOST_S:
        return f"takes {taken_s:.1f} s"
    return f"takes {taken / 1e6:.0f} MB" if taken > MOST_BYTES else problem


def _memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


def search(name: str, seconds: float, seed: int, known: Searched) -> None:
    """Give a parser a turn in a process of its own, and add what was found to ``known``."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    current = context.Array("c", SMALL_BYTES + 8, lock=False)
    arguments = name, seconds, seed, known.costly, current, sender
    process = context.Process(target=turn, args=arguments, daemon=True)
    process.start()
    sender.close()
    try:
        found: Searched = receiver.recv()
    except EOFError:  # the process ended without an answer
        process.join()
        data = current.raw[8 : 8 + int.from_bytes(current.raw[:8])]
        hangs = process.exitcode == -signal.SIGPROF
        words = f"takes more than {_HANGS_S:g} s" if hangs else f"ends the process: {process.exitcode}"
        known.findings.append((words, data))
        return
    process.join()
    known.inputs += found.inputs
    known.longest_s = max(known.longest_s, found.longest_s)
    known.most_bytes = max(known.most_bytes, found.most_bytes)
    known.costly = found.costly
    known.findings += found.findings


def write_findings(name: str, findings: list[tuple[str, bytes]], folder: Path) -> Iterator[str]:
    """Write the findings of a parser to files, and yield a line about each."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (problem, data) in enumerate(findings):
        file = folder / f"{name.replace(' ', '_')}-{number}.bin"
        file.write_bytes(data)
        yield f"{name}: {problem}: {file}"


def main(words: list[str] | None = None, folder: Path = FINDINGS) -> int:
    options = argparse.ArgumentParser(prog="fuzz", description="Looks for inputs that cost parsers too much.")
    options.add_argument("minutes", type=float)
    options.add_argument(
        "parsers", nargs="*", metavar="PARSER", help=f"one of {', '.join(PARSERS)}; default all"
    )
    options.add_argument("--seed", type=int, default=None)
    given = options.parse_args(words)
    names, chance = given.parsers or list(PARSERS), random.Random(given.seed)
    end_s, searched = time.monotonic() + 60 * given.minutes, {name: Searched() for name in names}
    turn_s = min(30.0, max(60 * given.minutes / len(names), 0.1))
    told: dict[str, int] = dict.fromkeys(names, 0)
    while time.monotonic() < end_s or not all(one.inputs or one.findings for one in searched.values()):
        fewest = min(names, key=lambda name: (len(searched[name].findings) >= _MOST_FINDINGS, told[name]))
        told[fewest] += 1
        before = len(searched[fewest].findings)
        if before >= _MOST_FINDINGS:  # so have all
            break
        search(fewest, turn_s, chance.getrandbits(32), searched[fewest])
        for problem, _ in searched[fewest].findings[before:]:
            print(f"{fewest}: {problem}", flush=True)  # noqa: T201
    for name, found in searched.items():
        line = (
            f"{found.inputs:9,} inputs, at most {found.longest_s:.3f} s and {found.most_bytes / 1e6:.0f} MB"
        )
        print(f"{name:20} {line}")  # noqa: T201
        for text in write_findings(name, found.findings, folder):
            print(text)  # noqa: T201
    return int(any(found.findings for found in searched.values()))


if __name__ == "__main__":
    sys.exit(main())

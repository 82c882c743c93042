"""A DNS of our own: nothing is asked outside, and answers may change from one question to the next."""

from __future__ import annotations

import socket

from aiohttp.abc import AbstractResolver, ResolveResult


class FakeNames(AbstractResolver):
    """A DNS that answers from a table, each name's answers in turn; it counts the questions."""

    def __init__(self, table: dict[str, list[str]], missing: OSError | None = None) -> None:
        self.table, self.asked = table, list[str]()
        self.missing = missing or OSError(None, "no such name")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        del family
        self.asked.append(host)
        if host not in self.table:
            raise self.missing
        answers = self.table[host]
        address = answers.pop(0) if len(answers) > 1 else answers[0]
        found = ResolveResult(
            hostname=host,
            host=address,
            port=port,
            family=socket.AF_INET,
            proto=0,
            flags=socket.AI_NUMERICHOST,
        )
        return [found]

    async def close(self) -> None:
        """Nothing to close."""

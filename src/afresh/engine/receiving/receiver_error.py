"""How a request that another server sent was received: what it announced, or why it was refused."""

from __future__ import annotations

from dataclasses import dataclass


class ReceiverError(Exception):
    """A request that was received is refused. ``status`` is the HTTP status that says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Received:
    """How many items a request announced, how many of its keys belong to no item, and how many became new
    items."""

    noticed: int
    unknown: int
    born: int = 0

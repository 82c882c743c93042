"""Addresses of a newspaper, which share long beginnings, for the tests and benchmarks of families."""

from __future__ import annotations


def news(count: int) -> list[str]:
    """Return addresses as a newspaper has them, of 152 characters each."""
    words = ["council", "weather", "minister", "harbour", "election", "budget", "storm", "museum", "railway"]
    names = []
    for number in range(count):
        slug = "-".join(words[number // 7**place % 9] for place in range(12))
        day = f"2026/{number % 12 + 1:02d}/{number // 12 % 28 + 1:02d}"
        names.append(f"https://news.example.org/{day}/{slug}"[:143].ljust(144, "x") + f"-{number:07d}")
    return names

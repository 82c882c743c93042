"""How much time and memory the parsing of one input may take, and which inputs are small.

What a parser needs is not in proportion to its input if the author of the input wants it so: a page of nested
elements takes the square of its size. Inputs of up to ``SMALL_BYTES`` are parsed in this process, where the
worst inputs known take a few hundredths of a second (``python -m bench parsing``). A parser process, which
can be ended, gets the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from afresh.values.errors import AfreshError

SMALL_BYTES = 16_384
_LEAST_MEMORY_BYTES = 96_000_000
_MEMORY_PER_BYTE = 16


@dataclass(frozen=True, slots=True)
class ParseBudget:
    """The limits of one parse: seconds of processor time, and bytes of memory beyond what the process has."""

    processor_s: float = 10.0
    memory_bytes: int = _LEAST_MEMORY_BYTES

    @property
    def longest_s(self) -> float:
        """The seconds after which a parse is ended even if it waits for a processor that others use."""
        return 60.0 + 6.0 * self.processor_s


def budget_for_size(size_bytes: int) -> ParseBudget:
    """Return the budget of an input of this size.

    >>> budget_for_size(50_000_000).memory_bytes
    896000000
    """
    return ParseBudget(memory_bytes=_LEAST_MEMORY_BYTES + _MEMORY_PER_BYTE * size_bytes)


class ParseBudgetError(AfreshError):
    """The parsing of an input exceeds its budget, or ended its process. The message says what happened."""

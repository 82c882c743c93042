"""The settings of a source of pages that follows links."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from afresh.sources.http.follow.addresses import normal_address
from afresh.sources.settings import PositiveSeconds, Texts
from afresh.values.errors import UsageError


class FollowSettings(BaseModel):
    """Which pages are found by following links. ``start`` are the addresses to begin with; the pages on their
    hosts and below their paths are found. Of these only pages that match a pattern of ``include``, if there
    is one, and none of ``exclude`` are items, at most ``depth`` links away from a start page.

    >>> FollowSettings(start="https://a.test/docs/#top").start
    ('https://a.test/docs/',)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    start: Texts = ()
    include: Texts = ()
    exclude: Texts = ()
    depth: int = Field(default=100, ge=0)
    chain: int = Field(default=100, ge=1)
    queries: int = Field(default=1000, ge=0)
    drop_parameters: Texts = ()
    respect_nofollow: bool = True
    respect_noindex: bool = True
    unlinked: Literal["keep", "remove"] = "keep"
    unlinked_after: PositiveSeconds = 7 * 86400.0

    def model_post_init(self, context: Any, /) -> None:
        del context
        object.__setattr__(self, "start", tuple(dict.fromkeys(map(self._normal_start, self.start))))

    def _normal_start(self, address: str) -> str:
        found = normal_address(address, self.drop_parameters)
        if found is None:
            raise UsageError(
                f"start: {address!r} is not an http or https address, such as https://example.org/docs/"
            )
        return found

    def with_starts(self, more: tuple[str, ...]) -> FollowSettings:
        """Return these settings with more addresses to begin with."""
        return FollowSettings.model_validate({**self.model_dump(), "start": (*self.start, *more)})

    def without_starts(self) -> FollowSettings:
        return self.model_copy(update={"start": ()})


def read_follow(given: object) -> object:
    """Return the table of settings for a short form: an address, or a list of addresses to begin with."""
    return {"start": given} if isinstance(given, str | list | tuple) else given

"""How pages are rendered, by the settings of a source."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BrowserRules:
    """``program`` is the path of the browser; empty for the first that is found. ``most_memory`` is in bytes,
    for all processes of the browser and Playwright's driver."""

    program: str = ""
    most_memory: int = 1_000_000_000
    allow_private: bool = False


@dataclass(frozen=True, slots=True)
class VisitRules:
    """``wait`` is a CSS selector to wait for; empty: until no request was under way for half a second.
    ``scrolls`` is how many screens to scroll down at most. ``blocked`` are types of resources."""

    wait: str = ""
    scrolls: int = 5
    blocked: frozenset[str] = frozenset({"image", "font", "media"})


@dataclass(frozen=True, slots=True)
class RenderRules:
    """How pages are rendered. ``state_file`` is a storage state of Playwright with the cookies of a login."""

    browser: BrowserRules = field(default_factory=BrowserRules)
    visit: VisitRules = field(default_factory=VisitRules)
    state_file: str = ""

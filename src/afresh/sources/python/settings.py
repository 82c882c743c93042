"""Settings of a source of kind ``python``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from afresh.sources.settings import Size, SourceSettings


class PythonSettings(SourceSettings):
    """Settings of a source of kind ``python``. ``call`` is the function, written ``module:function``. If
    ``bulk_call`` is given, that function is called with a list of up to ``bulk`` keys, and returns the
    results by key. Up to ``concurrency`` calls run at once. A result of more than ``max_size`` bytes is a
    failure."""

    kind: Literal["python"] = "python"
    call: str
    bulk_call: str = ""
    bulk: int = Field(default=100, ge=1, le=10_000)
    concurrency: int = Field(default=4, ge=1)
    max_size: Size = 50_000_000

    @property
    def polls_at_once(self) -> int:
        return self.concurrency

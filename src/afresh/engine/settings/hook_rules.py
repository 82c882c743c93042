"""How the hook of a source is called: the table ``[source.hook]`` of ``afresh.toml``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from afresh.engine.settings.item_views import HookSetting
from afresh.values.units import parse_duration

_Seconds = Annotated[
    float,
    BeforeValidator(lambda given: parse_duration(given) if isinstance(given, str) else given),
    Field(ge=0, allow_inf_nan=False),
]


class HookRules(BaseModel):
    """With ``batch`` above 1, the hook gets up to so many changes at once, as soon as so many wait, or the
    oldest one was seen ``within`` seconds ago. ``at_once`` calls run at the same time. With ``previous``, a
    change comes with the content before. After ``attempts`` failed calls a change is given up."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch: int = Field(default=1, ge=1, le=10_000)
    within: _Seconds = 5.0
    at_once: int = Field(default=1, ge=1, le=64)
    previous: bool = False
    attempts: int = Field(default=50, ge=1)


@dataclass(frozen=True, slots=True)
class SourceHook:
    """The hook of a source, and how it is called."""

    hook: HookSetting
    rules: HookRules = field(default_factory=HookRules)

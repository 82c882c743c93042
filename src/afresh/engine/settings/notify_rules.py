"""What people are told of the changes of a source: the table ``[source.notification]`` of ``afresh.toml``."""

from __future__ import annotations

from string import Template
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from afresh.values.outcome import EventKind
from afresh.values.units import parse_duration

CHANGE_FIELDS = ("kind", "item", "source", "version", "time", "size", "previous_size", "change", "diff")
TITLE_FIELDS = ("summary", "number", "source")


def _checked(text: str, fields: tuple[str, ...]) -> str:
    """Return a template; raise ``ValueError`` if it names a field that does not exist."""
    template = Template(text)
    unknown = [name for name in template.get_identifiers() if name not in fields]
    known = ", ".join(f"${name}" for name in fields)
    if unknown:
        raise ValueError(f"there is no field ${unknown[0]}: write {known}")
    if not template.is_valid():
        raise ValueError(f"a $ stands before a field ({known}); write $$ for the sign itself")
    return text


_Seconds = Annotated[
    float,
    BeforeValidator(lambda given: parse_duration(given) if isinstance(given, str) else given),
    Field(ge=0, allow_inf_nan=False),
]
_ChangeText = Annotated[str, AfterValidator(lambda text: _checked(text, CHANGE_FIELDS))]
_TitleText = Annotated[str, AfterValidator(lambda text: _checked(text, TITLE_FIELDS))]


class NotifyRules(BaseModel):
    """A message is sent at once, or ``every`` so many seconds with all changes since the last one. It tells
    changes of these ``kinds``; of those of kind ``changed``, only if at least the share ``min_change`` of the
    content is new. ``title`` and ``template`` are texts with ``$fields``: that of the message, and the part
    of its text for each change. A difference has at most ``diff_lines`` lines, of ``content`` in this
    form. After ``attempts`` failures a message is given up."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    every: _Seconds = 0.0
    min_change: float = Field(default=0.0, ge=0, le=1)
    kinds: tuple[EventKind, ...] = ("new", "changed", "gone", "removed")
    title: _TitleText = "afresh: $summary"
    template: _ChangeText = "$kind: $item\n$time\n$diff"
    content: Literal["raw", "text", "markdown"] = "raw"
    diff_lines: int = Field(default=40, ge=0, le=1000)
    attempts: int = Field(default=50, ge=1)

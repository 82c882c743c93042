"""What is received from other servers: the tables ``[web.webhook.NAME]`` of ``afresh.toml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from afresh.sources.change_detection import compile_json_path
from afresh.values.errors import UsageError
from afresh.values.units import parse_duration

SignatureScheme = Literal["hex", "base64", "timestamp", "token"]
SIGNATURE_SCHEMES: tuple[SignatureScheme, ...] = get_args(SignatureScheme)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
_PLACE = "{}"  # where a template has the value


def _check_path(path: str) -> str:
    try:
        compile_json_path("items", path)
    except UsageError as error:
        raise ValueError(str(error).partition(": ")[2]) from None
    return path


def _check_header(name: str) -> str:
    if not _HEADER.fullmatch(name):
        raise ValueError(f"is {name!r}: the name of an HTTP header, such as X-Hub-Signature-256")
    return name


def _check_template(text: str) -> str:
    if text.count(_PLACE) != 1:
        raise ValueError(f"is {text!r}: it must contain {{}} once, where the value stands")
    return text


def _check_names(given: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in given:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name[:80]!r} cannot name a webhook: use letters, digits, - and _")
    return given


Seconds = Annotated[
    float,
    BeforeValidator(lambda given: parse_duration(given) if isinstance(given, str) else given),
    Field(gt=0, allow_inf_nan=False),
]


class WebhookRules(BaseModel):
    """A webhook. The request has a signature of its body in ``header``: an HMAC with ``secret``, which may be
    ``env:NAME``, in this ``scheme``. ``items`` is the JMESPath expression that selects the keys of items in
    the JSON of the body; with ``template``, a key is this text with the value in place of ``{}``. The items
    are those of ``source``, or of all sources. What was received before within ``remember`` seconds is
    refused; a signature with a time must not be older either."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    secret: str = Field(min_length=1, repr=False)
    items: Annotated[str, AfterValidator(_check_path)]
    header: Annotated[str, AfterValidator(_check_header)] = "X-Hub-Signature-256"
    scheme: SignatureScheme = "hex"
    algorithm: Literal["sha256", "sha512", "sha1"] = "sha256"
    template: Annotated[str, AfterValidator(_check_template)] = _PLACE
    source: str = ""
    remember: Seconds = 300.0


Webhooks = Annotated[Mapping[str, WebhookRules], AfterValidator(_check_names)]

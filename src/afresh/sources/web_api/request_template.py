"""Templates of requests: an address and a body in which ``{names}`` stand for values.

In addresses, values are percent-encoded. A parameter of the address, a field of the form or a member of the
JSON body whose placeholders are all empty is left out. So ``query.author={authors}`` is sent only by queries
for an author, and ``updated_since={cursor}`` only if there is a cursor."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote, urlencode, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from afresh.values.errors import UsageError

Value: TypeAlias = str | int | float | Sequence[str]
"""A value of a placeholder. Several texts are joined in addresses and forms, and are a list in JSON."""

WEB = ("http://", "https://")
_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request that is ready to be sent. It is a POST request if it has a ``media_type``, else GET."""

    url: str
    body: bytes = field(default=b"", repr=False)
    media_type: str = ""


class Endpoint(BaseModel):
    """One request of an API, as the settings describe it: its address alone, or a table with a body.

    ``form`` is sent as a form, ``body`` as JSON, and ``graphql`` is a GraphQL query with its ``variables``;
    one of them at most. In JSON, a text that is only a placeholder becomes a number or a list if its value is
    one. ``safe`` are characters that are not encoded in the address, such as ``/`` or ``|``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    form: Mapping[str, str] = Field(default_factory=dict)
    body: Mapping[str, Any] = Field(default_factory=dict)
    graphql: str = ""
    variables: Mapping[str, Any] = Field(default_factory=dict)
    safe: str = ""


def _as_table(given: object) -> object:
    return ({"url": given} if given else None) if isinstance(given, str) else given


OptionalEndpoint = Annotated[Endpoint | None, BeforeValidator(_as_table)]
RequiredEndpoint = Annotated[Endpoint, BeforeValidator(_as_table)]


class RequestTemplate:
    """An ``Endpoint`` that can be filled in. ``setting`` is its name, for messages; ``known`` are the names
    that it may contain. Several texts are joined by ``joined_by``.

    >>> works = Endpoint(url="https://a.test/works?query.author={authors}&query.title={title}&rows={size}")
    >>> template = RequestTemplate("server", works, ["authors", "title", "size"])
    >>> template.fill({"authors": "", "title": "Web & more", "size": 20}).url
    'https://a.test/works?query.title=Web%20%26%20more&rows=20'
    >>> ids = RequestTemplate("look_up", Endpoint(url="https://a.test/", body={"ids": "{keys}"}), ["keys"])
    >>> ids.fill({"keys": ["1", "2"]}).body
    b'{"ids": ["1", "2"]}'
    """

    def __init__(
        self, setting: str, endpoint: Endpoint, known: Collection[str], *, joined_by: str = "|"
    ) -> None:
        self.setting, self.endpoint, self._joined_by = setting, endpoint, joined_by
        given = [name for name in ("form", "body", "graphql") if getattr(endpoint, name)]
        if len(given) > 1:
            raise UsageError(f"{setting}: {given[0]} and {given[1]} exclude each other")
        if endpoint.variables and not endpoint.graphql:
            raise UsageError(f"{setting}: variables belong to graphql")
        if not endpoint.url.startswith(WEB):
            raise UsageError(f"{setting}: must be a web address, as in https://example.org/")
        texts = [endpoint.url, *_texts(endpoint.form), *_texts(endpoint.body), *_texts(endpoint.variables)]
        self.parts = frozenset(name for text in texts for name in template_parts(setting, text, known))
        if "{" in "".join(urlsplit(endpoint.url)[:2]):
            raise UsageError(f"{setting}: the host must not contain a placeholder, since secrets go there")

    def fill(self, values: Mapping[str, Value]) -> ApiRequest:
        """Return the request with ``values`` instead of the placeholders."""
        endpoint = self.endpoint
        place, mark, parameters = endpoint.url.partition("?")
        url = self._text(place, values, self._quote)
        kept = [
            self._text(part, values, self._quote)
            for part in (parameters.split("&") if parameters else ())
            if not self._is_empty(part, values)
        ]
        url += mark + "&".join(kept) if kept else ""
        if endpoint.form:
            fields = [
                (name, self._text(text, values, str))
                for name, text in endpoint.form.items()
                if not self._is_empty(text, values)
            ]
            return ApiRequest(url, urlencode(fields).encode(), _FORM)
        body: object = self._json(endpoint.body, values)
        if endpoint.graphql:
            body = {"query": endpoint.graphql, "variables": self._json(endpoint.variables, values)}
        return ApiRequest(url, json.dumps(body).encode(), _JSON) if body else ApiRequest(url)

    def _quote(self, text: str) -> str:
        return quote(text, safe=self.endpoint.safe)

    def _text(self, template: str, values: Mapping[str, Value], encode: Callable[[str], str]) -> str:
        parts = []
        for literal, name, _, _ in Formatter().parse(template):
            parts.append(literal)
            if name is not None:
                parts.append(encode(self._joined(values.get(name, ""))))
        return "".join(parts)

    def _joined(self, value: Value) -> str:
        return str(value) if isinstance(value, str | int | float) else self._joined_by.join(value)

    def _is_empty(self, template: str, values: Mapping[str, Value]) -> bool:
        """Return whether a text has placeholders, and all of them are empty."""
        names = _names(template)
        return bool(names) and all(values.get(name, "") in ("", ()) for name in names)

    def _json(self, value: Any, values: Mapping[str, Value]) -> Any:
        if isinstance(value, Mapping):
            return {
                name: self._json(each, values)
                for name, each in value.items()
                if not (isinstance(each, str) and self._is_empty(each, values))
            }
        if isinstance(value, list | tuple):
            return [self._json(each, values) for each in value]
        if not isinstance(value, str):
            return value
        names = _names(value)
        if len(names) == 1 and value == f"{{{names[0]}}}":
            given = values.get(names[0], "")
            return given if isinstance(given, str | int | float) else list(given)
        return self._text(value, values, str)


def template_parts(setting: str, template: str, known: Collection[str]) -> set[str]:
    """Return the names of the placeholders in a text. Raise ``UsageError`` for a name that is not known."""
    try:
        found = set(_names(template))
    except ValueError:
        raise UsageError(f"{setting}: a single brace: write {{{{ for a brace itself") from None
    for name in sorted(found):
        if name not in known:
            wanted = ", ".join(f"{{{one}}}" for one in known)
            raise UsageError(f"{setting}: {{{name}}} is not known, only {wanted}")
    return found


def _names(template: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(template) if name is not None]


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)

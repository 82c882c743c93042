"""What a search source is made of, by its settings: the measures of its fields, and the server it asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from afresh.probes.dissimilarity import DISSIMILARITIES, Dissimilarity
from afresh.sources.context import SourceContext
from afresh.sources.python.user_function import find_function
from afresh.sources.search.relation import LocalRelation
from afresh.sources.search.server import SearchServer
from afresh.sources.search.settings import SearchSettings
from afresh.values.errors import UsageError, did_you_mean


def find_measures(settings: SearchSettings) -> Mapping[str, Dissimilarity]:
    """How much each content field differs, by the settings."""
    found: dict[str, Dissimilarity] = {}
    for name, given in settings.fields.items():
        if given in DISSIMILARITIES:
            found[name] = DISSIMILARITIES[given]
        elif ":" in given:
            found[name] = cast(Dissimilarity, find_function(given))
        else:
            hint = did_you_mean(given, DISSIMILARITIES)
            wanted = ", ".join(DISSIMILARITIES)
            raise UsageError(f"source {settings.name!r}, fields.{name}: {given!r}{hint}: one of {wanted}")
    return found


def make_server(settings: SearchSettings, context: SourceContext, relation: LocalRelation) -> SearchServer:
    """The server that the settings name."""
    if settings.over_http:
        from afresh.sources.http.aiohttp_fetcher import AiohttpFetcher
        from afresh.sources.http.secret_headers import secret_proxy
        from afresh.sources.search.http_server import HttpSearch

        proxy = secret_proxy(settings.http, context.resolver)
        fetcher = AiohttpFetcher(allow_private=settings.allow_private, proxy=proxy, clock=context.clock)
        return HttpSearch(settings, context, fetcher)
    if settings.in_database:
        from afresh.sources.search.sql_server import SqlSearch

        return SqlSearch(settings, context)
    from afresh.sources.search.file_server import FileSearch

    return FileSearch(settings, context, relation.index)

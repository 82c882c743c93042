"""Builds the parts of a search source from its settings: the measures of its fields, and its server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from afresh.probes.dissimilarity import DISSIMILARITIES, Dissimilarity
from afresh.sources.context import SourceContext
from afresh.sources.python.user_function import find_function
from afresh.sources.search.relation import LocalRelation
from afresh.sources.search.search_server import SearchServer
from afresh.sources.search.settings import SearchSettings
from afresh.values.errors import UsageError, did_you_mean


def make_measures(settings: SearchSettings) -> Mapping[str, Dissimilarity]:
    """Return for each content field the function that measures how much two values differ."""
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
    """Build the server that the settings name."""
    if settings.over_http:
        from afresh.sources.http.settings import secret_proxy
        from afresh.sources.search.http_server import HttpSearchServer

        proxy = secret_proxy(settings.http, context.resolver)
        fetcher = context.new_fetcher(settings.allow_private, proxy, context.clock)
        return HttpSearchServer(settings, context, fetcher)
    if settings.in_database:
        from afresh.sources.search.sql_server import SqlSearchServer

        return SqlSearchServer(settings, context)
    from afresh.sources.search.file_server import FileSearchServer

    return FileSearchServer(settings, context, relation.index)

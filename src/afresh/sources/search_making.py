"""What a search source is made of, by its settings: the measures of its fields, and the server it asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from afresh.probes.dissimilarity import DISSIMILARITIES, Dissimilarity
from afresh.sources.search_relation import Relation
from afresh.sources.search_server import SearchServer
from afresh.sources.search_settings import SearchSettings
from afresh.sources.surroundings import Surroundings
from afresh.sources.user_function import find_function
from afresh.values.errors import UsageError, did_you_mean


def measures_of(settings: SearchSettings) -> Mapping[str, Dissimilarity]:
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


def server_of(settings: SearchSettings, around: Surroundings, relation: Relation) -> SearchServer:
    """The server that the settings name."""
    if settings.over_http:
        from afresh.sources.http_secrets import secret_proxy
        from afresh.sources.search_http import HttpSearch

        proxy = secret_proxy(settings.http, around.resolver)
        fetcher = around.new_fetcher(settings.allow_private, proxy, around.clock)
        return HttpSearch(settings, around, fetcher)
    if settings.in_database:
        from afresh.sources.search_sql import SqlSearch

        return SqlSearch(settings, around)
    from afresh.sources.search_file import FileSearch

    return FileSearch(settings, around, relation.index)

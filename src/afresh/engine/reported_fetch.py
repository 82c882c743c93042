"""Decides what another program fetched, as a source would: from what it reports, a ``Fetched`` is made."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from afresh.engine.lent_requests import RequestEnd
from afresh.engine.settings.tables import Settings
from afresh.sources.change_detection import compare_content, most_bytes_here
from afresh.sources.http.fetcher import Reply, Trouble
from afresh.sources.http.settings import HttpSettings
from afresh.sources.http.soft_errors import ReceivedPage, find_soft_error
from afresh.sources.http.statuses import WITH_CONTENT, classify_reply, http_date_s
from afresh.sources.http.validators import MOVED, has_other_copy, validators_of
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.sources.settings import SourceSettings
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.reported import Reported

_BUSY = (429, 503)  # the statuses with which Retry-After counts
_LONGEST_PROBLEM = 500
_TROUBLES: dict[str, Trouble] = {word: word for word in get_args(Trouble)}


def is_fetch(reported: Reported) -> bool:
    """Return whether a report says what was fetched, and not only whether the item changed."""
    return reported.content is not None or _has_problem(reported)


def to_fetched(reported: Reported, lease: Lease, settings: Settings, parsers: ParserPool) -> Fetched:
    """Return what was fetched, compared with the copy by the rules of the item's source, and its cost."""
    table = settings.source(lease.source)
    if table is None:
        return Fetched("refused", problem=f"its source {lease.source!r} is not in the settings")
    if _has_problem(reported):
        found = _without_content(reported, lease)
    else:
        found = _with_content(reported, lease, table.settings, parsers)
    return replace(found, status=reported.status, requests=1, bytes=reported.bytes, seconds=reported.seconds)


def _without_content(reported: Reported, lease: Lease) -> Fetched:
    # A program that reports a 304 made a conditional request, with our validators or with its own.
    kind, problem = classify_reply(_reply(reported), conditional=True)
    if kind != "unchanged":
        return Fetched(kind, retry_after_s=_retry_after_s(reported), problem=problem[:_LONGEST_PROBLEM])
    kept = {name: value for name, value in lease.validators.items() if name != MOVED}
    validators = kept | validators_of(reported.validators)
    return Fetched(kind, validators=validators, modified_s=_modified_s(reported))


def _with_content(reported: Reported, lease: Lease, settings: SourceSettings, parsers: ParserPool) -> Fetched:
    content, url = reported.content or b"", reported.url or lease.key
    if isinstance(settings, HttpSettings):
        page = ReceivedPage(content, reported.media_type, lease.key, url, has_other_copy(lease, url))
        soft = find_soft_error(page, settings.error_patterns, checked=settings.page_checks)
        if soft is not None:
            return Fetched(soft[0], problem=soft[1])
    recipe, copy = settings.recipe.for_item(lease.selector), (lease.content_hash, lease.validators)
    try:
        found = parsers.parse_here(
            compare_content,
            content,
            reported.media_type,
            recipe,
            *copy,
            settings.least_similarity,
            small=most_bytes_here(recipe, settings.least_similarity),
            party=lease.group,
        )
    except ParseBudgetError as error:
        return Fetched("failed", problem=str(error))
    validators = {**validators_of(reported.validators), **found.notes}
    return replace(
        found.to_fetched(content, reported.media_type),
        validators=validators if url == lease.key else {**validators, "url": url},
        modified_s=_modified_s(reported),
    )


def _modified_s(reported: Reported) -> float | None:
    if reported.modified_s is not None:
        return reported.modified_s
    return http_date_s(reported.validators.get("last-modified"))


def request_end(reported: Reported, lease: Lease) -> RequestEnd:
    """Return how the request of a report ended, for the back-off of its host."""
    reply = _reply(reported)
    problem = classify_reply(reply, conditional=True)[1] if _has_problem(reported) else ""
    return RequestEnd(lease.group, reply, _retry_after_s(reported), problem[:_LONGEST_PROBLEM])


def _has_problem(reported: Reported) -> bool:
    """Return whether there was no answer, or one without content: a 304, 404, 429 and so on."""
    return bool(reported.failure) or (reported.status is not None and reported.status not in WITH_CONTENT)


def _reply(reported: Reported) -> Reply:
    if not reported.failure:
        return Reply(reported.status)
    problem = " ".join(reported.failure.split())
    refused = problem.removeprefix("refused: ")
    if refused != problem:
        return Reply(reported.status, trouble="url", problem=refused)
    return Reply(reported.status, trouble=_TROUBLES.get(problem, "body"), problem=problem)


def _retry_after_s(reported: Reported) -> float | None:
    return reported.retry_after_s if reported.status in _BUSY else None

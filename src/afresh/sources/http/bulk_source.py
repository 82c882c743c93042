"""An HTTP source whose pages are records of an API that can return many of them with one request.

Items are addresses such as ``https://example.org/papers/12``. Those that fit the template ``items`` are
polled by ``request``, which names many keys; the content of an item is its record in the answer. Other items
are polled as pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from afresh.sources.capabilities import Capabilities, GroupBackoff, share_cost
from afresh.sources.change_detection import compare_content, most_bytes_here
from afresh.sources.context import SourceContext
from afresh.sources.http.fetcher import Fetcher
from afresh.sources.http.settings import HttpBulkSettings, HttpSettings, WebSettings
from afresh.sources.http.source import HttpSource
from afresh.sources.http.urls import host_group
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.sql.canonical_json import row_json
from afresh.sources.sql.connections import KeyedRecord
from afresh.sources.web_api.api_client import ApiClient
from afresh.sources.web_api.records_answer import RecordsAnswer
from afresh.sources.web_api.settings import WebApiSettings
from afresh.values.fetched import Fetched, FetchedKind
from afresh.values.lease import Lease

_MEDIA_TYPE = "application/json"


class BulkHttpSource(HttpSource):
    """A ``BulkSource`` of pages and of records that one request returns together."""

    def __init__(
        self, settings: HttpSettings, context: SourceContext, fetcher: Fetcher, bulk: HttpBulkSettings
    ) -> None:
        super().__init__(settings, context, fetcher)
        self._own, self._bulk, self._parsers = settings, bulk, context.parsers
        api = _api_settings(settings, bulk)
        template = api.bulk_request
        assert template is not None
        self._api, self._request = ApiClient(api, context), template
        self._group = host_group(bulk.address("key"))
        self.capabilities = Capabilities(bulk=self, state=self, forms=self)

    def bulk_limit(self, group: str) -> int:
        return self._bulk.at_once if group == self._group else 1

    def ready_s(self, group: str, now_s: float) -> float:
        ready_s = super().ready_s(group, now_s)
        return max(ready_s, now_s + self._api.wait_s(group)) if group == self._group else ready_s

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        known = {backoff.group: backoff for backoff in self._api.backoffs()}
        return tuple((known | {backoff.group: backoff for backoff in super().backoffs()}).values())

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        if self._bulk.key_of(lease.key) is None:
            return await super().poll(lease, conditional=conditional)
        return (await self._poll_records([lease]))[0]

    async def poll_many(self, leases: Sequence[Lease], *, conditional: bool = True) -> list[Fetched]:
        records = [lease for lease in leases if self._bulk.key_of(lease.key) is not None]
        by_key = dict(zip((lease.key for lease in records), await self._poll_records(records), strict=True))
        return [
            by_key.get(lease.key) or await super(BulkHttpSource, self).poll(lease, conditional=conditional)
            for lease in leases
        ]

    async def close(self) -> None:
        await self._api.close()
        await super().close()

    async def _poll_records(self, leases: Sequence[Lease]) -> list[Fetched]:
        """Request the records of these items. What an answer lacks, without saying that it has all, is
        requested again: the rest if some records came, else one by one."""
        if not leases:
            return []
        keys = {lease.key: self._bulk.key_of(lease.key) or "" for lease in leases}
        answer = await self._api.bulk_look_up(self._request, list(keys.values()))
        if answer.problem:
            kind: FetchedKind = "refused" if answer.refused else "failed"
            failed = Fetched(kind, problem=answer.problem, retry_after_s=answer.retry_after_s)
            return self._paid([failed] * len(leases), answer)
        by_key = {record.key: record for record in answer.records}
        is_complete = len(leases) == 1 or answer.total == len(by_key)
        missing = [lease for lease in leases if keys[lease.key] not in by_key]
        again: dict[str, Fetched] = {}
        if missing and not is_complete:
            parts = [missing] if by_key and answer.total is not None else [[lease] for lease in missing]
            for part in parts:
                found = await self._poll_records(part)
                again |= dict(zip((lease.key for lease in part), found, strict=True))
        results = [
            again.get(lease.key) or await self._result(lease, by_key.get(keys[lease.key])) for lease in leases
        ]
        first = [one for lease, one in zip(leases, results, strict=True) if lease.key not in again]
        paid = iter(self._paid(first, answer))
        return [again.get(lease.key) or next(paid) for lease in leases]

    def _paid(self, results: Sequence[Fetched], answer: RecordsAnswer) -> list[Fetched]:
        shared = share_cost(results, requests=answer.requests, seconds=answer.seconds)
        return [replace(one, bytes=0 if at else answer.bytes) for at, one in enumerate(shared)]

    async def _result(self, lease: Lease, record: KeyedRecord | None) -> Fetched:
        if record is None:
            return Fetched("gone", problem="the server has no record with this key")
        content = row_json(record.fields.items())
        recipe, near = self._own.recipe.for_item(lease.selector), self._own.least_similarity
        arguments = content, _MEDIA_TYPE, recipe, lease.content_hash, lease.validators, near
        try:
            small = most_bytes_here(recipe, near)
            found = await self._parsers.parse(compare_content, *arguments, small=small, party=lease.group)
        except ParseBudgetError as error:
            return Fetched("failed", problem=str(error))
        return found.to_fetched(content, _MEDIA_TYPE)


def _api_settings(settings: HttpSettings, bulk: HttpBulkSettings) -> WebApiSettings:
    """Return the settings of the API that returns the records."""
    given: Mapping[str, object] = {name: getattr(settings, name) for name in WebSettings.model_fields}
    own = {"rows": bulk.rows, "total": bulk.total, "key": "key", "key_path": bulk.key_path}
    request = {"bulk_look_up": bulk.request, "keys_joined_by": bulk.joined_by}
    return WebApiSettings.model_validate({**given, **own, **request})

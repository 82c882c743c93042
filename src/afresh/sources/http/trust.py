"""How far the validators of each host are trusted. This is learned from every response of the host."""

from __future__ import annotations

from collections.abc import Mapping

from afresh.sources.change_detection import Comparison
from afresh.sources.http.client import FinalResponse
from afresh.sources.http.statuses import http_date_s
from afresh.sources.http.urls import host_group
from afresh.sources.http.validators import (
    ValidatorTrust,
    conditional_headers,
    is_conditional,
    record_check_sent,
    record_content,
    record_date,
    record_not_modified,
)
from afresh.values.lease import Lease

_MOST_HOSTS = 100_000
_MOST_SAVED = 10_000  # hosts


class HostTrust:
    """The trust in the validators of each host. An unknown host is trusted."""

    def __init__(self) -> None:
        self._trust: dict[str, ValidatorTrust] = {}

    def of(self, group: str) -> ValidatorTrust:
        return self._trust.get(group, ValidatorTrust())

    def save(self) -> dict[str, ValidatorTrust]:
        """Return the trust by host, for the hosts that were added last."""
        return dict(list(self._trust.items())[-_MOST_SAVED:])

    def load(self, saved: Mapping[str, ValidatorTrust]) -> None:
        """Add the hosts of an earlier process, except those that are known already."""
        for host, trust in saved.items():
            self._trust.setdefault(host, trust)

    def conditions(self, lease: Lease, url: str, recipe: str, *, conditional: bool) -> dict[str, str]:
        """Return the conditional headers of a request; none if a check is due or ``conditional`` is False.
        ``recipe`` is the fingerprint of the item's recipe."""
        trust = self.of(host_group(url))
        headers = conditional_headers(lease, url, recipe, trust)
        if headers and (not conditional or trust.is_check_due):
            self._set(url, record_check_sent(trust))
            return {}
        return headers

    def learn_from_not_modified(self, response: FinalResponse) -> ValidatorTrust:
        return self._set(response.url, record_not_modified(self.of(host_group(response.url))))

    def learn_from_content(
        self,
        lease: Lease,
        response: FinalResponse,
        validators: Mapping[str, str],
        recipe: str,
        found: Comparison,
        now_s: float,
    ) -> ValidatorTrust:
        """Compare the validators of the copy with those of new content, and return the new trust."""
        trust = self.of(host_group(response.url))
        has_copy = found.comparable and lease.content_hash is not None
        if has_copy:
            same_url = lease.validators.get("url", lease.key) == validators.get("url", lease.key)
            before = lease.validators if same_url else {}
            sendable = conditional_headers(lease, response.url, recipe, trust)
            checked = bool(sendable) and not is_conditional(response.headers)
            trust = record_content(trust, before, validators, changed=found.differs, checked=checked)
        modified_s = http_date_s(validators.get("last-modified"))
        if modified_s is not None:
            copied_s = lease.polled_s if has_copy else None
            trust = record_date(trust, modified_s, now_s, copied_s=copied_s, changed=found.differs)
        return self._set(response.url, trust)

    def _set(self, url: str, trust: ValidatorTrust) -> ValidatorTrust:
        self._trust[host_group(url)] = trust
        if len(self._trust) > _MOST_HOSTS:
            del self._trust[next(iter(self._trust))]  # the host known longest; it is learned again
        return trust

"""How far the validators of each host are trusted."""

from __future__ import annotations

from afresh.sources.http.client import FinalResponse
from afresh.sources.http.fetcher import Reply
from afresh.sources.http.trust import HostTrust
from afresh.sources.http.validators import ValidatorRecord, ValidatorTrust
from afresh.values.lease import Lease

URL = "http://a.test/page"
LEASE = Lease(1, URL, "web", "a.test", 1, 0.0, validators={"etag": '"1"'}, content_hash=b"x")


def test_after_enough_not_modified_responses_one_request_is_sent_without_conditions() -> None:
    trust = HostTrust()
    sent = []
    for _ in range(ValidatorTrust().gap + 2):
        headers = trust.conditions(LEASE, URL, "", conditional=True)
        sent.append(bool(headers))
        if headers:
            trust.learn_from_not_modified(FinalResponse(URL, Reply(304), headers))
    assert sent == [True] * ValidatorTrust().gap + [False, True]


def test_saved_hosts_do_not_replace_known_hosts() -> None:
    trust, noisy = HostTrust(), ValidatorTrust(etag=ValidatorRecord(noise=9))
    trust.learn_from_not_modified(FinalResponse(URL, Reply(304)))
    known = trust.of("a.test")
    trust.load({"a.test": noisy, "b.test": noisy})
    assert (trust.of("a.test"), trust.of("b.test"), trust.of("c.test")) == (known, noisy, ValidatorTrust())
    assert trust.save() == {"a.test": known, "b.test": noisy}

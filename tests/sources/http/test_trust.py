"""How far the validators of each host are trusted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from afresh.sources.change_detection import Comparison
from afresh.sources.http.client import FinalResponse
from afresh.sources.http.fetcher import Reply
from afresh.sources.http.hidden_changes import SeenChanges
from afresh.sources.http.trust import HostTrust, SavedTrust, draw_number
from afresh.sources.http.validators import ValidatorRecord, ValidatorTrust
from afresh.values.lease import Lease

URL = "http://a.test/shop/1.html"
LEASE = Lease(1, URL, "web", "a.test", 1, 0.0, validators={"etag": '"1"'}, content_hash=b"x", polled_s=10.0)


def learn(
    trust: HostTrust, etags: Iterable[str], *, changed: bool, url: str = URL, sent: bool = False
) -> None:
    """Content with each of these ETags, for copies with the ETag "1"."""
    for number, etag in enumerate(etags):
        lease = replace(LEASE, item_id=number, key=url)
        headers = {"If-None-Match": '"1"'} if sent else {}
        found = Comparison(b"y", changed, changed, True, {})
        trust.learn_from_content(lease, FinalResponse(url, Reply(200), headers), {"etag": etag}, found, 20.0)


def sends(trust: HostTrust, url: str = URL) -> bool:
    lease = replace(LEASE, key=url)
    return "If-None-Match" in trust.conditions(lease, url, "", conditional=True)


def test_a_lie_is_counted_against_the_changes_that_polls_without_validators_saw() -> None:
    trust = HostTrust(draw=lambda _lease: 1.0)
    learn(trust, ['"1"'], changed=True)
    assert not sends(trust)
    learn(trust, ['"1"'] * 500, changed=False)
    learn(trust, ['"2"'] * 500, changed=True, sent=True)
    assert not sends(trust)
    learn(trust, ['"2"'] * 60, changed=True)
    assert sends(trust)


def test_other_pages_of_a_host_are_believed_if_they_were_honest() -> None:
    trust = HostTrust(draw=lambda _lease: 1.0)
    learn(trust, ['"2"'] * 300, changed=True, url="http://a.test/docs/1.html")
    learn(trust, ['"1"'] * 10, changed=True)
    assert not sends(trust)
    assert sends(trust, "http://a.test/docs/2.html")
    assert trust.save().complaints("a.test") == (
        "its ETag stays on some pages while the content changes: no longer sent for these",
    )


def test_a_lie_is_counted_once_for_each_page() -> None:
    trust = HostTrust()
    lesson: tuple[str, ...] = ()
    for _ in range(5):
        lease = replace(LEASE, validators={"etag": '"1"', "lied": " ".join(lesson)})
        found = Comparison(b"y", True, True, True, {})
        lesson = trust.learn_from_content(
            lease, FinalResponse(URL, Reply(200)), {"etag": '"1"'}, found, 20.0
        ).lied
    assert lesson == ("etag",)
    assert trust.save().seen["etag", "a.test"] == SeenChanges(hidden=1)
    never, known = HostTrust(draw=lambda _lease: 1.0), {"etag": '"1"', "lied": "etag"}
    assert never.conditions(replace(LEASE, validators=known), URL, "", conditional=True) == {}


def test_each_lease_draws_its_own_number_evenly() -> None:
    drawn = [
        draw_number(replace(LEASE, item_id=item, token=token)) for item in range(30) for token in range(30)
    ]
    assert len(set(drawn)) == 900
    assert 0.4 < sum(drawn) / 900 < 0.6


def test_saved_hosts_do_not_replace_known_hosts() -> None:
    trust, noisy = HostTrust(), ValidatorTrust(etag=ValidatorRecord(wrong=9))
    learn(trust, ['"2"'], changed=True)
    known = trust.save()
    seen = {("etag", host): SeenChanges(hidden=9) for host in ("a.test", "b.test")}
    trust.load(SavedTrust({"a.test": noisy, "b.test": noisy}, seen))
    assert trust.save().hosts == {**known.hosts, "b.test": noisy}
    assert trust.save().seen == {**known.seen, ("etag", "b.test"): SeenChanges(hidden=9)}

"""People are told of changes: at once or as a digest, at least once, and no address is ever shown."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.living import LivingSite, engine_for
from tests.engine.runner.test_hooks import FixedClock
from tests.servers.message_receivers import Webhook, mail_server, webhook
from tests.servers.quick_afresh import QuickAfresh
from tests.waiting import until

from afresh.engine.reporting.delivery_status import notify_failures
from afresh.engine.runner.notify.notifier import Notifier
from afresh.engine.settings.describing import settings_as_dict
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.settings.tables import Settings
from afresh.engine.threaded_store import ThreadedStore
from afresh.stores.opening import open_store
from afresh.stores.store import Store
from afresh.values.errors import UsageError
from afresh.values.items import NewItem
from afresh.values.outcome import EventKind, NewCopy, Observation, Outcome

DAY_S = 86400.0


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory:") as opened:
        opened.items.add([NewItem(key, "web", "h") for key in ("a", "b")], 0.0)
        yield opened


@pytest.fixture
def service() -> Iterator[Webhook]:
    with webhook() as found:
        yield found


def settings_of(*addresses: str, rules: str = "") -> Settings:
    return parse_settings(
        f"[[source]]\nname = 'web'\nnotify = {list(addresses)}\n[source.notification]\n{rules}\n"
    )


def change(
    store: Store, key: str, content: bytes, now_s: float, kind: EventKind = "changed", size: float = 0.5
) -> None:
    item_id = store.items.ids([key])[key]
    lease = store.leases.take([item_id], now_s, 60.0)[0]
    seen = Observation(item_id, now_s, 1.0, changed=True)
    copy = NewCopy(content, "text/plain", content, change_size=size)
    store.commit([Outcome(lease, now_s, now_s + 9, observation=seen, new_copy=copy, event=kind)])


def deliver(
    store: Store, settings: Settings, *times_s: float, timeout_s: float = 30.0, **secrets: str
) -> list[int]:
    """Deliver at each of these times, by a notifier that has just started; return how much was sent."""

    async def work() -> list[int]:
        threaded, clock = ThreadedStore(store), FixedClock()
        clock.time_s = times_s[0]
        notifier = Notifier(threaded, clock, secrets.get)
        notifier.replace_outlets(notifier.open_outlets(settings), timeout_s=timeout_s)
        sent = []
        try:
            for clock.time_s in times_s:
                sent.append(await notifier.deliver())
        finally:
            await notifier.close()
            threaded.close()
        return sent

    return asyncio.run(work())


def test_a_change_is_told_at_once_with_its_difference(store: Store, service: Webhook) -> None:
    settings = settings_of("env:HOOK")
    change(store, "a", b"same\nold", 1000.0, "new")
    assert deliver(store, settings, 1001.0, HOOK=service.address) == [0]  # it begins here
    change(store, "a", b"same\nnew", 1002.0)
    assert deliver(store, settings, 1003.0, 1004.0, HOOK=service.address) == [1, 0]
    assert deliver(store, settings, 1005.0, HOOK=service.address) == [0]  # after a restart
    (message,) = service.messages
    assert message["title"] == "afresh: changed: a"
    assert message["message"] == ("changed: a\n1970-01-01 00:16:42 UTC\n@@ -1,2 +1,2 @@\n same\n-old\n+new")


def test_a_digest_tells_all_changes_of_a_day_in_one_mail(store: Store) -> None:
    with mail_server() as (address, mails):
        settings = settings_of(address, rules="every = '1d'\ntemplate = '$kind $item $size'")
        assert deliver(store, settings, 1000.0) == [0]
        change(store, "a", b"1", 2000.0, "new")
        change(store, "b", b"22", 3000.0, "new")
        change(store, "a", b"333", 4000.0)
        assert deliver(store, settings, 5000.0, 1000.0 + DAY_S - 1.0) == [0, 0]
        assert deliver(store, settings, 1000.0 + DAY_S, 1001.0 + DAY_S) == [1, 0]
        change(store, "b", b"4", 2000.0 + DAY_S)
        assert deliver(store, settings, 3000.0 + DAY_S, 1000.0 + 2 * DAY_S) == [0, 1]
    assert [mail["Subject"] for mail in mails] == ["afresh: 3 changes of web", "afresh: changed: b"]
    text = mails[0].get_content()
    assert [line.strip() for line in text.splitlines() if line.strip()] == [
        "new a 1 B",
        "new b 2 B",
        "changed a 3 B",
    ]
    assert mails[0]["To"] == "reader@example.org"


def test_an_address_that_fails_is_tried_again_and_holds_up_no_other(
    store: Store, service: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    with webhook() as broken:
        broken.status = 500
        settings = settings_of(broken.address, service.address)
        deliver(store, settings, 1000.0)
        change(store, "a", b"1", 1001.0, "new")
        with caplog.at_level(logging.DEBUG):
            assert deliver(store, settings, 1002.0, 1002.5) == [1, 0]
        change(store, "b", b"1", 1003.0, "new")
        broken.status = 200
        assert deliver(store, settings, 1004.0, 1100.0) == [2, 0]
        assert [each["title"] for each in broken.messages] == ["afresh: 2 changes of web"]
        assert broken.asked == 2
    assert [each["title"] for each in service.messages] == ["afresh: new: a", "afresh: new: b"]
    (record,) = [each for each in caplog.records if "not sent" in each.getMessage()]
    fields = record.__dict__["fields"]
    assert fields["to"] == "address 1 (json://•••)"
    assert "500" in fields["problem"]
    logged = str([each.__dict__ for each in caplog.records if each.name.startswith("afresh")])
    assert not any(word in logged for word in ("hunter2", "private-path", "someone"))
    assert not logging.getLogger("apprise").propagate  # it logs addresses


def test_a_service_that_does_not_answer_is_a_failure_after_the_time_limit(
    store: Store, service: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_of(service.address)
    deliver(store, settings, 1000.0)
    change(store, "a", b"1", 1001.0, "new")
    service.free.clear()
    assert deliver(store, settings, 1002.0, timeout_s=0.3) == [0]
    assert caplog.records[-1].__dict__["fields"]["problem"] == "not sent within 0.3 s"
    service.free.set()
    assert deliver(store, settings, 1003.0) == [1]


def test_small_changes_and_other_kinds_are_not_told(store: Store, service: Webhook) -> None:
    rules = "min_change = 0.2\nkinds = ['changed', 'gone']\ntitle = '$number of $source'\n"
    settings = settings_of(service.address, rules=rules + "template = '$item $change$$'")
    deliver(store, settings, 1000.0)
    change(store, "a", b"1", 1001.0, "new")
    change(store, "b", b"1", 1002.0, "changed", size=0.1)
    assert deliver(store, settings, 1003.0) == [0]
    change(store, "b", b"2", 1004.0, "changed", size=0.25)
    assert deliver(store, settings, 1005.0) == [1]
    assert [(each["title"], each["message"]) for each in service.messages] == [("1 of web", "b 25%$")]


def test_what_no_address_needs_any_more_is_forgotten(store: Store, service: Webhook) -> None:
    deliver(store, settings_of(service.address, service.address), 1000.0)
    store.feed.move("notify me", store.feed.cursor(), 1000.0)
    assert len(store.feed.consumers()) == 3
    deliver(store, settings_of(service.address), 1001.0)
    assert [each.name for each in store.feed.consumers()] == ["notify me", "notify:web:1"]


def test_a_long_message_counts_the_changes_that_it_does_not_show(store: Store, service: Webhook) -> None:
    settings = settings_of(service.address, rules="template = '$item'")
    deliver(store, settings, 1000.0)
    store.items.add([NewItem(f"i{number}", "web", "h") for number in range(103)], 1000.0)
    for number in range(103):
        change(store, f"i{number}", b"1", 1001.0, "new")
    assert deliver(store, settings, 1002.0) == [1]
    text = service.messages[0]["message"]
    assert "i99\n\n… and 3 more changes: see 'afresh changes'" in text
    assert "i100" not in text


@pytest.mark.parametrize(
    ("addresses", "rules", "words"),
    [
        (["json://ok", "nonsense-hunter2"], "", "address 2 is not understood"),
        (["nosuch://hunter2"], "", "address 1 is not understood"),
        (["env:NOWHERE"], "", "no variable NOWHERE"),
        (["json://ok"], "template = '$itme'", "no field $itme"),
        (["json://ok"], "title = '100 $'", r"write \$\$"),
        (["json://ok"], "every = 'daily'", "every"),
        (["json://ok"], "evry = '1d'", "did you mean 'every'"),
    ],
)
def test_what_is_wrong_is_said_without_the_address(
    store: Store, addresses: list[str], rules: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words.replace("$itme", r"\$itme")) as caught:
        deliver(store, settings_of(*addresses, rules=rules), 1.0)
    assert "hunter2" not in str(caught.value)


def test_settings_do_not_show_addresses() -> None:
    settings = settings_of("json://hunter2")
    assert settings_as_dict(settings)["source"][0]["notify"] == ["hidden"]
    assert "hunter2" not in repr(settings)
    with pytest.raises(UsageError, match="must be a list of addresses"):
        parse_settings("[[source]]\nname = 'web'\nnotify = 5")


def test_a_missing_extra_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(UsageError, match=r"pip install 'afresh\[notify\]'"):
        deliver(store, settings_of("json://ok"), 1.0)
    assert deliver(store, settings_of(), 1.0) == [0]  # nobody is told: it is not needed


@pytest.mark.waits
def test_a_message_is_sent_again_if_the_engine_is_killed_while_it_is_sent(
    quick_afresh: QuickAfresh, tmp_path: Path, service: Webhook
) -> None:
    with LivingSite([0.0]) as site:
        own = f'delay = "0s"\nallow_private = true\nnotify = ["{service.address}"]\n'
        (tmp_path / "afresh.toml").write_text(f'[[source]]\nname = "web"\n{own}')
        with engine_for(tmp_path) as engine:
            engine.add(site.urls())
        service.free.clear()
        killed = quick_afresh.start("run", folder=tmp_path)
        until(lambda: service.asked, "a message")
        killed.close()
        service.free.set()
        again = quick_afresh.start("run", "--once", folder=tmp_path)
        try:
            assert again.wait(120) == 0
        finally:
            again.close()
    assert service.asked == 2
    assert [each["title"] for each in service.messages][-1] == f"afresh: new: {site.url(0)}"


def test_failures_are_shown_and_a_message_is_given_up_after_its_attempts(
    store: Store, service: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_of(service.address, rules="attempts = 3")
    change(store, "a", b"1", 1000.0, "new")
    deliver(store, settings, 1001.0)
    begin = store.feed.cursor()
    change(store, "a", b"2", 1002.0)
    service.status = 500
    assert deliver(store, settings, 1003.0) == [0]
    (failing,) = notify_failures(store, settings)
    assert (failing.name, failing.source, failing.attempts) == ("notify:web:1", "web", 1)
    assert (failing.next_s, failing.given_up) == (1005.0, 0)
    assert "500" in failing.problem
    assert "hunter2" not in str(failing)
    assert "private-path" not in str(failing)
    assert deliver(store, settings, 2000.0, 3000.0, 4000.0) == [0, 1, 0]  # given up, and the place is moved
    (lost,) = notify_failures(store, settings)
    assert (lost.given_up, lost.since, lost.next_s) == (1, begin, None)
    assert "a notification was given up" in caplog.text
    service.status = 200
    change(store, "a", b"3", 5000.0)
    assert deliver(store, settings, 5001.0) == [1]
    (known,) = notify_failures(store, settings)
    assert (known.attempts, known.given_up) == (0, 1)
    store.feed.move("notify:web:1", lost.since, 5002.0, "web")  # afresh consumers reset
    assert deliver(store, settings, 5003.0) == [1]
    assert "2 changes of web" in service.messages[-1]["title"]
    assert notify_failures(store, settings) == ()

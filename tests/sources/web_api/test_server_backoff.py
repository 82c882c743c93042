"""A web API that asks for fewer requests rests as long as it asks for."""

from __future__ import annotations

from tests.sources.polling import SetClock

from afresh.sources.http.settings import HttpSettings
from afresh.sources.web_api.records_answer import RecordsAnswer
from afresh.sources.web_api.server_backoff import ServerBackoff


def test_retry_after_is_taken_as_given_and_does_not_double() -> None:
    clock = SetClock()
    backoff = ServerBackoff(HttpSettings(name="shop"), clock)
    limited = RecordsAnswer(problem="429 Too Many Requests", limited=True, busy=True, retry_after_s=2.0)
    for _ in range(3):
        (fetched,) = backoff.start(limited, 1)
        assert backoff.until_s - clock.now_s() == 2.0
        assert (fetched.kind, fetched.retry_after_s) == ("failed", 2.0)
    backoff.start(RecordsAnswer(problem="no JSON"), 1)
    assert backoff.until_s - clock.now_s() == 10.0

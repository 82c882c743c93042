"""What a group allows: the quota of its source is shown with what is used of it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from afresh.engine.app import make_engine
from afresh.engine.reporting.group_status import group_statuses, pack_backoffs
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.state_names import BACKOFFS
from afresh.sources.capabilities import GroupBackoff
from afresh.sources.http.pacing.quota import UsedQuota

SETTINGS = '[[source]]\nname = "web"\nquota = "100/1h"\ndelay = "1s"\n'


@pytest.mark.parametrize("ends_in_s", [600.0, -5.0])
def test_a_quota_is_a_limit_with_what_is_used_of_it(tmp_path: Path, ends_in_s: float) -> None:
    now_s = time.time()
    with make_engine(parse_settings(SETTINGS), tmp_path, seed=1) as engine:
        engine.add(["https://a.test/1"])
        used = GroupBackoff("a.test", 0.0, 0, "", None, UsedQuota(30, now_s + ends_in_s))
        engine.store.state.set({BACKOFFS + "web": pack_backoffs([used])})
        (found,) = group_statuses(engine.store, engine.store.items.counts(), engine.settings, now_s)
    assert found.most_per_s == pytest.approx(100 / 3600)
    assert (found.quota, found.quota_used) == (100, 30 if ends_in_s > 0 else 0)

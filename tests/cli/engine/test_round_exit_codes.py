"""The exit code of ``afresh run --once``, and what it lists as failed, for every kind of source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Afresh
from tests.cli.engine.conftest import QUICK, write_settings
from tests.servers.site import Answer, Handler, Seen, Site

ROUND = ("run", "--once", "--json", *QUICK)


def status_page(status: int) -> Handler:
    async def handler(_seen: Seen, answer: Answer) -> None:
        await answer.send(b"", status)

    return handler


def ends(mirror: Afresh, *more: str) -> tuple[int, dict[str, Any]]:
    ran = mirror(*ROUND, *more)
    return ran.code, json.loads(ran.out)


def test_0_if_all_went_well_or_nothing_was_due_or_a_page_is_not_there(mirror: Afresh, site: Site) -> None:
    site.routes["/gone"] = status_page(410)
    mirror("add", *(f"{site.url}/{name}" for name in ("a", "nowhere", "gone")))
    code, done = ends(mirror)
    assert (code, done["polls"]) == (0, 3)
    assert done["failed_items"] == done["failed_sources"] == done["failed_hosts"] == {}
    assert ends(mirror)[0] == 0


def test_3_if_some_items_failed_and_they_are_listed(mirror: Afresh, site: Site) -> None:
    site.routes["/b"] = status_page(403)
    mirror("add", *(f"{site.url}/{name}" for name in "ab"))
    code, done = ends(mirror)
    assert (code, list(done["failed_items"])) == (3, [f"{site.url}/b"])
    assert "403" in done["failed_items"][f"{site.url}/b"]


def test_1_if_nothing_that_was_due_succeeded(mirror: Afresh, site: Site) -> None:
    site.routes["/b"] = status_page(403)
    mirror("add", f"{site.url}/b")
    code, done = ends(mirror)
    assert (code, list(done["failed_items"])) == (1, [f"{site.url}/b"])


def test_a_dead_host_is_named_and_does_not_hold_up_the_round(mirror: Afresh, site: Site) -> None:
    dead = "http://127.0.0.1:9"
    mirror("add", f"{site.url}/a", *(f"{dead}/{number}" for number in range(20)))
    code, done = ends(mirror)
    assert (code, list(done["failed_hosts"])) == (3, ["127.0.0.1:9"])
    assert "due items left out" in done["failed_hosts"]["127.0.0.1:9"]
    assert done["polls"] < 20
    # The host still backs off in the next round, which has nothing else to poll.
    mirror("set", f"{site.url}/a", "--pause")
    code, done = ends(mirror)
    assert (code, list(done["failed_hosts"])) == (1, ["127.0.0.1:9"])


def test_a_source_that_cannot_be_listed_is_named(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    write_settings(tmp_path, f'[[source]]\nname = "web"\nsitemaps = ["{site.url}/no-map.xml"]\n')
    mirror("add", f"{site.url}/a")
    code, done = ends(mirror)
    assert (code, list(done["failed_sources"]), done["failed_items"]) == (3, ["web"], {})


@pytest.mark.parametrize("kind", ["sql", "view"])
def test_a_database_that_cannot_be_reached_is_a_failure(mirror: Afresh, tmp_path: Path, kind: str) -> None:
    own = 'key = "id"\nquery = "select id from papers"\n' if kind == "sql" else ""
    url = "postgresql://127.0.0.1:9/none"
    write_settings(tmp_path, f'[[source]]\nname = "rows"\nkind = "{kind}"\nurl = "{url}"\n{own}')
    ran = mirror("run", "--once", "--json", "--budget", "200/s")
    done = json.loads(ran.out)
    assert (ran.code, list(done["failed_sources"])) == (1, ["rows"])
    assert "freshness" not in done
    assert mirror("run", "--for", "1s", "--budget", "200/s").code == 1


@pytest.mark.parametrize("kind", ["python", "api", "search"])
def test_what_cannot_be_asked_is_a_failure_of_every_kind(mirror: Afresh, tmp_path: Path, kind: str) -> None:
    """A function that raises, an API and a search server that do not answer: 1, since nothing succeeded."""
    dead = "http://127.0.0.1:9"
    (tmp_path / "relation.csv").write_text("id,title\n1,one\n2,two\n")
    own = {
        "python": 'call = "json:loads"\n',  # no key is JSON
        "api": f'list = "{dead}/items"\nkey = "id"\nfirst_rest = "1h"\n',
        "search": f'relation = "relation.csv"\nkey = "id"\nkeywords = ["title"]\nfirst_rest = "1h"\n'
        f'server = "{dead}/?q={{query}}&p={{page}}"\nlook_up = "{dead}/{{key}}"\n',
    }
    private = "" if kind == "python" else "allow_private = true\n"
    write_settings(tmp_path, f'[[source]]\nname = "other"\nkind = "{kind}"\n{own[kind]}{private}')
    if kind == "python":
        mirror("add", "no json", "--source", "other")
    ran = mirror("run", "--once", "--json", "--budget", "200/s")
    done = json.loads(ran.out)
    assert ran.code == 1, done
    assert done["failed_items"] or done["failed_sources"] or done["failed_hosts"]
    if kind != "python":  # the server still backs off in the next round
        assert mirror("run", "--once", "--budget", "200/s").code == 1

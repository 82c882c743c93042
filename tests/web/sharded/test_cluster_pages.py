"""The pages and the API of a cluster: over real stores of three shards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.cluster.shards_in_files import FileShards
from tests.web.cluster_site import HOSTS, PAGE, cluster_dashboard
from tests.web.serving import TOKEN, Client

from afresh.web.app import WebAccess

ITEMS = 10 * HOSTS + 40


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, FileShards]]:
    with cluster_dashboard(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture
def web(cluster: tuple[Client, FileShards]) -> Client:
    return cluster[0]


def test_all_pages_show_all_shards(web: Client) -> None:
    now = web.get("/").text
    assert f">{ITEMS}<" in now  # the items of all shards
    assert "Read only: &#39;afresh add&#39; adds items to a cluster." in now
    menu = re.findall(r'<a href="(/[a-z]*)"(?: aria-current="page")?>', now)
    assert menu[:4] == ["/", "/items", "/changes", "/shards"]
    assert "/plan" not in menu
    item = web.get(f"/item?key={quote(PAGE.format(3, 4), safe='')}").text
    assert "From version 1 to 2." in item
    assert "second &lt;b&gt;line&lt;/b&gt;" in item
    assert "data-action" not in item  # nothing can be changed here
    assert "data-action" not in web.get("/items").text


def test_the_list_of_items_goes_on_through_all_shards(web: Client) -> None:
    found, path = [], "/items?sort=key"
    while path:
        text = web.get(path).text
        found += re.findall(r'<td class="key"><a href="[^"]*">([^<]*)</a>', text)
        following = re.search(r'rel="next" href="([^"]*)"', text)
        path = following.group(1).replace("&amp;", "&") if following else ""
    assert len(found) == ITEMS
    assert found == sorted(found)


def test_the_page_of_changes_goes_on_through_all_shards(web: Client) -> None:
    found: list[str] = []
    path = "/changes?kind=changed"
    while path:
        text = web.get(path).text
        found += re.findall(r'href="/item\?key=([^"&]*)', text)
        following = re.search(r'rel="next" href="([^"]*)"', text)
        path = following.group(1).replace("&amp;", "&") if following else ""
    assert len(found) == len(set(found)) == 10 * HOSTS
    diff = web.get(f"/diff?key={found[0]}").text
    assert "second &lt;b&gt;line&lt;/b&gt;" in diff


def test_shards_are_shown_with_their_share_and_trouble(web: Client) -> None:
    text = web.get("/shards").text
    assert "nothing is heard of it" in text
    assert "large.example" in text
    api = web.get("/api/v1/shards").json()
    assert (api["is_running"], api["price"]) == (True, 0.25)
    assert sum(shard["items"] for shard in api["shards"]) == ITEMS
    assert [shard["problem"] for shard in api["shards"]] == ["", "", "nothing is heard of it"]
    (large,) = api["large_hosts"]
    assert (large["host"], large["items"]) == ("large.example", 40)


def test_the_api_reads_over_all_shards(web: Client) -> None:
    status = web.get("/api/v1/status").json()
    assert (status["items"], status["copies"]) == (ITEMS, 10 * HOSTS)
    assert len(web.get("/api/v1/items?limit=200").json()["items"]) == ITEMS
    key = PAGE.format(1, 1)
    assert web.get(f"/api/v1/copy?key={quote(key, safe='')}").body == b"second <b>line</b>"
    assert web.get(f"/api/v1/item?key={quote(key, safe='')}").json()["item"]["key"] == key
    seen, cursor = 0, ""
    while True:
        page = web.get(f"/api/v1/changes?limit=50{cursor}").json()
        seen += len(page["changes"])
        cursor = f"&since={quote(page['cursor'], safe='')}"
        if page["is_last"]:
            break
    assert seen == 2 * 10 * HOSTS
    assert web.get("/changes.atom?content=diff&limit=3").text.count("+second") == 3
    assert f'afresh_items{{status="active"}} {float(ITEMS)}' in web.get("/metrics").text
    assert web.get("/readyz").json()["ok"] is True
    assert web.get("/api/docs").status == 200


def test_what_a_cluster_lacks_is_said_in_words(web: Client) -> None:
    for path in ("/plan", "/sources"):
        answer = web.get(path, Accept="text/html")
        assert answer.status == 404
        assert "is that of one engine: a cluster has none" in answer.text
    assert web.get("/api/v1/plan").status == 404
    posted = web.ask("POST", "/api/v1/items", {"keys": ["https://a.example/"]}, token=TOKEN)
    assert posted.status == 405
    missing = web.get("/api/v1/item?key=nobody")
    assert (missing.status, missing.problem()) == (404, "there is no item 'nobody'")


def test_a_shard_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with cluster_dashboard(tmp_path) as (web, shards):
        assert web.get("/").status == 200
        shards.place((0, 1, 2, 3), ("", "", "", "far"))
        text = web.get("/shards").text
        assert "the Ray cluster at 127.0.0.1:9 cannot be reached" in text
        found = web.get(f"/items?text={quote(PAGE.format(1, 1), safe='')}", Accept="text/html")
        assert found.status == 503  # a list without the items of a shard would not be the list
        assert "cannot be reached" in found.text


def test_where_others_can_read_the_token_is_needed(tmp_path: Path) -> None:
    with cluster_dashboard(tmp_path, WebAccess(TOKEN, read_token=True)) as (web, _):
        assert web.get("/").status == 401
        assert web.ask("GET", "/", token=TOKEN).status == 200

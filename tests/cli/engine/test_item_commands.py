"""``afresh add``: documents that cannot be read, private addresses, and keys of other sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh
from tests.cli.engine.conftest import QUICK
from tests.servers.site import Answer, Seen, Site, page
from tests.servers.threaded import sitemap


def items(mirror: Afresh) -> int:
    return int(json.loads(mirror("status", "--json").out)["items"])


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        ("/missing.xml", ("--allow-private",), "404 Not Found"),
        ("/closed/map.xml", ("--allow-private",), "robots.txt forbids it"),
        ("/a", ("--allow-private",), "neither XML nor a list of addresses"),
        ("/map.xml", (), "127.0.0.1 is a loopback address (allowed by --allow-private"),
    ],
)
def test_a_document_that_cannot_be_read_is_an_error_and_not_kept(
    mirror: Afresh, site: Site, path: str, options: tuple[str, ...], words: str
) -> None:
    ran = mirror("add", "--sitemap", site.url + path, *options)
    assert ran.code == 1
    assert f"{site.url}{path} cannot be read: " in ran.err
    assert words in ran.err
    assert items(mirror) == 0
    asked = len(site.seen)
    assert mirror("run", "--once", *QUICK).code == 0  # nothing is remembered of it
    assert len(site.seen) == asked


def test_a_server_that_was_down_is_asked_again_by_the_next_command(mirror: Afresh, site: Site) -> None:
    async def silent(_seen: Seen, answer: Answer) -> None:
        answer.hang_up()

    robots, site.routes["/robots.txt"] = site.routes["/robots.txt"], silent
    add = (
        "add",
        "--sitemap",
        f"{site.url}/map.xml",
        "--allow-private",
        "--set",
        "source.web.first_rest=0.01s",
    )
    assert "robots.txt cannot be read" in mirror(*add).err
    site.routes["/robots.txt"] = robots
    ran = mirror(*add)
    assert (ran.code, items(mirror)) == (0, 2), ran.err


def test_what_can_be_read_is_added_beside_what_cannot(mirror: Afresh, site: Site) -> None:
    documents = ("--sitemap", f"{site.url}/map.xml", "--feed", f"{site.url}/feed")
    ran = mirror("add", f"{site.url}/c", *documents, "--allow-private", "--json")
    assert ran.code == 1
    assert json.loads(ran.out) == {"new": 3, "items": 3, "unread": {f"{site.url}/feed": "404 Not Found"}}


def test_only_what_is_new_is_read(mirror: Afresh, site: Site) -> None:
    site.routes["/more.xml"] = page(sitemap(site.url, "c"), Content_Type="application/xml")
    for name in ("map", "more"):
        assert mirror("add", "--sitemap", f"{site.url}/{name}.xml", "--allow-private").code == 0
    assert [path for path in site.paths() if path.endswith(".xml")] == ["/map.xml", "/more.xml"]
    assert items(mirror) == 3


def test_add_says_that_run_must_be_allowed_too(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    assert "needs --allow-private too" in mirror("add", f"{site.url}/a", "--allow-private").err
    settings = tmp_path / "afresh.toml"
    given = mirror("add", f"{site.url}/a", "--allow-private").err
    assert "or allow_private = true in the [[source]] table of afresh.toml" in given
    settings.write_text("")  # the source is the default
    shown = mirror("add", f"{site.url}/a", "--allow-private").err
    assert "these three lines at the end of afresh.toml" in shown
    settings.write_text("\n".join(line.strip() for line in shown.splitlines()[-3:]) + "\n")
    assert "needs --allow-private" not in mirror("add", f"{site.url}/b", "--allow-private").err


def test_a_key_of_another_source_is_told_how_it_is_added(mirror: Afresh, tmp_path: Path) -> None:
    with (tmp_path / "afresh.toml").open("a", encoding="utf-8") as file:
        file.write('[[source]]\nname = "prices"\nkind = "python"\ncall = "math:sqrt"\n')
    ran = mirror("add", "tea")
    assert ran.code == 2
    assert "not an http or https address" in ran.err
    assert "for a source other than 'web' name prices (--source)" in ran.err
    assert mirror("add", "tea", "--source", "prices").code == 0


@pytest.fixture
def shops(mirror: Afresh, tmp_path: Path) -> Afresh:
    """A project whose sources ``shop-a`` and ``shop-b`` both have an item with the key 17."""
    with (tmp_path / "afresh.toml").open("a") as file:
        for name in ("shop-a", "shop-b"):
            file.write(f'[[source]]\nname = "{name}"\nkind = "python"\ncall = "builtins:ascii"\n')
    for name in ("shop-a", "shop-b"):
        assert mirror("add", "17", "--source", name).code == 0
    return mirror


def test_a_key_of_two_sources_ends_commands_with_2_until_the_source_is_named(
    shops: Afresh, tmp_path: Path
) -> None:
    assert shops("run", "--once").code == 0
    (tmp_path / "polls.jsonl").write_text('{"item": "17", "changed": true}\n')
    commands = (
        ("get", "17"),
        ("why", "17"),
        ("set", "17", "--weight", "3"),
        ("observe", "polls.jsonl"),
        ("remove", "17"),
    )
    for command in commands:
        ran = shops(*command)
        assert ran.code == 2
        assert "item '17' is in several sources: shop-a, shop-b; name one of them (--source)" in ran.err
        wrong = shops(*command, "--source", "shop-x")
        assert (wrong.code, "unknown source 'shop-x'" in wrong.err) == (2, True)
    assert items(shops) == 2
    for command in commands:
        assert shops(*command, "--source", "shop-b").code == 0
    assert items(shops) == 1
    assert shops("get", "17").out == "'17'"
    assert json.loads(shops("why", "17", "--json").out)["item"]["source"] == "shop-a"


def test_leases_of_two_items_with_one_key_are_told_apart(shops: Afresh, tmp_path: Path) -> None:
    leases = shops("due", "--lease", "10m", "--json", "--set", "budget.burst=9").out
    (tmp_path / "leases.jsonl").write_text(leases)
    bare = [{name: json.loads(line)[name] for name in ("item", "lease")} for line in leases.splitlines()]
    (tmp_path / "bare.jsonl").write_text(json.dumps(bare[0]))
    ran = shops("lease", "extend", "bare.jsonl")
    assert (ran.code, "shop-a, shop-b" in ran.err) == (2, True)
    assert shops("lease", "extend", "bare.jsonl", "--source", "shop-b").code == 0
    assert json.loads(shops("lease", "release", "leases.jsonl", "--json").out) == {"held": 2, "ended": []}


REFUSED = (
    "refused: 127.0.0.1 is a loopback address (allowed by --allow-private, or by allow_private = true in "
    'the [[source]] table of afresh.toml with name = "web")'
)


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_an_address_that_no_run_will_poll_is_told_when_it_is_added(
    mirror: Afresh, site: Site, dry: tuple[str, ...]
) -> None:
    ran = mirror("add", f"{site.url}/a", f"{site.url}/b", "https://example.org/", *dry)
    assert ran.code == 0
    assert f"{site.url}/a and 1 other item will not be polled: {REFUSED}" in ran.err
    assert items(mirror) == (0 if dry else 3)
    assert "will not be polled" not in mirror("add", f"{site.url}/c", "--allow-private", *dry).err
    assert "will not be polled" not in mirror("add", "https://example.org/b", *dry).err
    assert site.seen == []


def test_links_are_not_followed_from_an_address_that_is_refused(mirror: Afresh, site: Site) -> None:
    for dry in ((), ("--dry-run",)):
        ran = mirror("add", "--follow", f"{site.url}/a", *dry)
        assert ran.code == (0 if dry else 1)
        assert f"{site.url}/a" in ran.err
        assert REFUSED in " ".join(ran.err.split())
    assert items(mirror) == 0
    assert mirror("run", "--once", *QUICK).code == 0  # nothing is remembered of it
    assert site.seen == []

"""A site without a sitemap is copied from its start page, by links; what is no page of it is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh, afresh
from tests.cli.engine.conftest import QUICK, mirror
from tests.engine.virtual_site import VirtualSite
from tests.servers.site import Answer, Handler, Seen, Site, page
from tests.servers.threaded import served

from afresh import open_engine
from afresh.engine.reporting.item_selection import EVERYTHING, selected_items
from afresh.engine.scheduler.restore import restore_scheduler
from afresh.sources.http.fetcher import Reply, Request

__all__ = ["afresh", "mirror"]


def html(*links: str, head: str = "", **headers: str) -> Handler:
    anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
    return page(f"<html><head>{head}</head><body>{anchors}</body></html>".encode(), **headers)


def redirect(to: str) -> Handler:
    async def handler(_seen: Seen, answer: Answer) -> None:
        await answer.send(b"", 301, Location=to)

    return handler


@pytest.fixture
def site() -> Iterator[Site]:
    with served({"/robots.txt": page(b"User-agent: *\nDisallow: /docs/closed")}) as found:
        yield found


@pytest.fixture
def listed(mirror: Afresh, site: Site) -> Callable[..., dict[str, str]]:
    """Returns the status of the items by path, of those with the status that is asked for."""

    def find(*options: str) -> dict[str, str]:
        ran = mirror("list", "--json", "--columns", "item,status", *options)
        return {one["item"].removeprefix(site.url): one["status"] for one in json.loads(ran.out)["items"]}

    return find


def copied(mirror: Afresh, site: Site) -> list[str]:
    return sorted(
        json.loads(line)["item"].removeprefix(site.url) for line in mirror("export").out.splitlines()
    )


def follow(mirror: Afresh, site: Site, start: str = "/docs/") -> None:
    ran = mirror("add", "--follow", site.url + start, "--allow-private")
    assert ran.code == 0, ran.err
    assert mirror("run", "--once", *QUICK).code == 0


def test_every_page_below_the_start_page_is_copied_once_and_no_other(
    mirror: Afresh, site: Site, listed: Callable[..., dict[str, str]]
) -> None:
    other = site.url.replace("127.0.0.1", "localhost")
    site.routes |= {
        "/docs/": html("a.html#x", "a.html", "/blog/", f"{other}/docs/c", "b/?utm_source=x", "pic.png"),
        "/docs/a.html": html("b/#top", "../docs/deep/one.html", "/docs/closed/x.html"),
        "/docs/b/": html("hidden.html", head='<meta name="robots" content="nofollow">'),
        "/docs/b/hidden.html": html(),
        "/docs/deep/one.html": html("two.html", head='<base href="/docs/deep/sub/">'),
        "/docs/deep/sub/two.html": html("three.html", head='<meta name="robots" content="noindex">'),
        "/docs/deep/sub/three.html": html("/docs/four"),
        "/docs/four": html("/docs/five", X_Robots_Tag="otherbot: noindex, nofollow"),
        "/docs/five": html("/docs/six", X_Robots_Tag="nofollow"),
        "/blog/": html(),
    }
    follow(mirror, site)
    pages = ["", "a.html", "b/", "deep/one.html", "deep/sub/three.html", "five", "four"]
    assert copied(mirror, site) == [f"/docs/{path}" for path in pages]
    assert set(listed("--status", "refused")) == {"/docs/closed/x.html", "/docs/deep/sub/two.html"}
    asked = [path for path in site.paths() if path != "/robots.txt"]
    assert len(asked) == len(set(asked)) == len(pages) + 1


def test_a_page_of_two_addresses_is_one_item(
    mirror: Afresh, site: Site, listed: Callable[..., dict[str, str]]
) -> None:
    site.routes |= {
        "/docs": redirect("/docs/"),
        "/docs/": html("/docs/old", "/docs/away", "/docs/index.html", "/docs/x?print=1"),
        "/docs/old": redirect("/docs/new"),
        "/docs/new": html(),
        "/docs/away": redirect("/login-help"),
        "/login-help": html(),
        "/docs/index.html": html("/docs/only-here", head='<link rel="canonical" href="/docs/">'),
        "/docs/only-here": html(head='<link rel="canonical" href="/docs/">'),
        "/docs/x": html(head='<link rel="canonical" href="/docs/x">'),
    }
    follow(mirror, site, "/docs")
    assert copied(mirror, site) == ["/docs/", "/docs/new", "/docs/only-here", "/docs/x"]
    aliases = {"/docs", "/docs/old", "/docs/away", "/docs/index.html", "/docs/x?print=1"}
    assert set(listed("--status", "refused")) == aliases
    why = mirror("why", f"{site.url}/docs/old")
    assert f"leads to {site.url}/docs/new" in why.out


def test_patterns_and_depth_bound_what_is_followed(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    with (tmp_path / "afresh.toml").open("a") as file:
        file.write('[source.follow]\ninclude = ["*/docs/*"]\nexclude = ["*/old/*"]\ndepth = 2\n')
    site.routes |= {
        "/": html("/docs/1", "/docs/old/1", "/blog/"),
        "/docs/1": html("/docs/2"),
        "/docs/2": html("/docs/3"),
        "/docs/3": html(),
    }
    follow(mirror, site, "/")
    assert copied(mirror, site) == ["/", "/docs/1", "/docs/2"]
    assert "more than 2 links from a start page (depth)" in " ".join(mirror("status").out.split())


def test_endless_pages_are_bounded_and_reported(
    mirror: Afresh, site: Site, tmp_path: Path, listed: Callable[..., dict[str, str]]
) -> None:
    with (tmp_path / "afresh.toml").open("a") as file:
        file.write("[source.follow]\nchain = 5\nqueries = 4\n")

    async def month(seen: Seen, answer: Answer) -> None:
        number = int(seen.path.rpartition("/")[2])
        links = f'<a href="/cal/{number + 1}">next</a><a href="/loop/a/{"a/" * number}">down</a>'
        await answer.send(links.encode(), Content_Type="text/html")

    async def search(seen: Seen, answer: Answer) -> None:
        links = "".join(f'<a href="{seen.path}&p{number}=1">more</a>' for number in range(3))
        await answer.send(links.encode(), Content_Type="text/html")

    site.routes |= {f"/cal/{number}": month for number in range(20)}
    site.routes |= {"/": html("/cal/0", "/find?q=1&sid=0123456789abcdef0123"), "/find": search}
    follow(mirror, site, "/")
    assert len([path for path in listed() if path.startswith("/cal/")]) == 6
    assert len([path for path in listed() if path.startswith("/find?")]) == 4
    assert "/find?q=1" in listed()
    said = " ".join(mirror("status").out.split())
    assert "more than 5 pages such as /cal/# that lead to each other (chain)" in said
    assert "more than 4 addresses with parameters on one path (queries)" in said
    assert "a path that repeats itself" in said


def due(mirror: Afresh) -> None:
    """Poll every active item in one more round."""
    assert mirror("set", "--match", "*", "--status", "active", "--poll-now").code == 0
    assert mirror("run", "--once", *QUICK).code == 0


def test_a_page_to_which_nothing_links_is_reported_and_stays_or_is_removed(
    mirror: Afresh, site: Site, tmp_path: Path, listed: Callable[..., dict[str, str]]
) -> None:
    site.routes |= {
        "/": html("/a", "/b"),
        "/a": html("/", "/c"),
        "/b": html("/d"),
        "/c": html("/"),
        "/d": html("/b"),  # b and d link to each other
    }
    follow(mirror, site, "/")
    assert listed("--status", "unlinked") == {}
    site.routes["/"] = html("/a")
    due(mirror)
    due(mirror)  # what a round found is judged at the start of the next
    assert set(listed("--status", "unlinked")) == {"/b", "/d"}
    assert "2 unlinked" in " ".join(mirror("status").out.split())
    site.routes["/a"] = html("/", "/c", "/d")
    due(mirror)
    due(mirror)
    assert listed("--status", "unlinked") == {}
    site.routes["/a"] = html("/", "/c")
    with (tmp_path / "afresh.toml").open("a") as file:
        file.write('[source.follow]\nunlinked = "remove"\nunlinked_after = 0.001\n')
    for _ in range(3):
        due(mirror)
    assert set(listed()) == {"/", "/a", "/c"}


def test_pages_that_show_new_pages_are_polled_more_often(mirror: Afresh, site: Site) -> None:
    """Two pages change at every poll, but only one of them shows new pages."""
    site.routes |= {"/": html("/news", "/clock"), "/news": html("/n0"), "/clock": html(head="0")}
    site.routes |= {f"/n{number}": html() for number in range(40)}
    follow(mirror, site, "/")
    for number in range(1, 4):
        site.routes["/news"] = html(*(f"/n{one}" for one in range(number * 4)))
        site.routes["/clock"] = html(head=str(number))
        due(mirror)
    with open_engine(".") as engine:
        (page,) = engine.store.links.gaining()
        assert (page.readings, page.gained) == (4, 11)
        found = {item.key: item.id for item in selected_items(engine.store, EVERYTHING)}
        assert page.item_id == found[f"{site.url}/news"]
        scheduler = restore_scheduler(
            engine.store, engine.current(), engine.store.plan.columns(), engine.clock.now_s()
        )
        rows = scheduler.item_rows.rows([found[f"{site.url}/{name}"] for name in ("news", "clock")])
        news, clock = scheduler.policy.ranking.adaptive.items.weight[rows]
        assert news / clock == pytest.approx(1 + 11 / 4)


def test_pages_that_were_copied_before_are_followed_too(mirror: Afresh, site: Site) -> None:
    site.routes |= {"/": html("/a", ETag='"1"'), "/a": html("/b", ETag='"2"'), "/b": html()}
    assert mirror("add", f"{site.url}/", f"{site.url}/a").code == 0
    assert mirror("run", "--once", *QUICK).code == 0
    assert mirror("add", "--follow", f"{site.url}/", "--allow-private").code == 0
    due(mirror)
    assert copied(mirror, site) == ["/", "/a", "/b"]


class _Variants(VirtualSite):
    """A site with four names, of which three redirect to ``https://www.a.test``."""

    asked: list[str]

    async def fetch(self, request: Request) -> Reply:
        place, path = request.url.split("a.test", 1)
        if path != "/robots.txt":
            self.asked.append(request.url)
        if place == "https://www.":
            return await super().fetch(request)
        return Reply(301, {"location": f"https://www.a.test{path}"}, b"", seconds=0.001)


def test_names_of_a_host_that_redirect_to_each_other_are_one_site(tmp_path: Path) -> None:
    names = ("http://a.test", "https://a.test", "http://www.a.test", "https://www.a.test")
    links = [f"{name}/docs/{page}" for name in names for page in "xy"]
    site = _Variants(routes={"/docs/": html(*links), "/docs/x": html(*links), "/docs/y": html("/docs/")})
    site.asked = []
    for attempt in range(2):  # what was learned is known to the next run
        with site.engine(tmp_path, budget="2/s") as engine:
            if attempt == 0:
                engine.add_listings(follow=["http://a.test/docs/"])
            engine.run(for_s=20.0)
            kept = {item.key for item in selected_items(engine.store, EVERYTHING) if item.version}
        assert kept == {"https://www.a.test/docs/", "https://www.a.test/docs/x", "https://www.a.test/docs/y"}
        others = [address for address in site.asked if not address.startswith("https://www.")]
        assert all(address.endswith("/docs/") for address in others)  # only to learn where they lead

"""The pages in a real browser: over a mirror whose time the tests move, a real engine, and trouble."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from jinja2.utils import htmlsafe_json_dumps
from playwright.sync_api import Browser, Page, expect
from tests.engine.living import LivingSite, engine_for
from tests.engine.warehouse import OF_A
from tests.servers.site import page as served_page
from tests.servers.threaded import served
from tests.slow_cases import with_slow_cases
from tests.web.browser import LOOKS, PHONE, as_seen, cut, page_of, serious
from tests.web.cluster_site import cluster_dashboard
from tests.web.mirror import Mirror, open_mirror
from tests.web.running import PATIENCE_S, Running
from tests.web.serving import TOKEN, Client, dashboard, engine_of, filled
from tests.web.stage import Stage

from afresh.web.app import make_app
from afresh.web.server import Server, listen

pytestmark = pytest.mark.waits(together="stage")

DRAWN = {"/": ("freshness", "rates", "budget"), "/plan": ("budget", "cho")}
TOO_WIDE = "document.documentElement.scrollWidth - innerWidth"


@pytest.fixture(scope="module", autouse=True)
def _quick_ticks() -> Iterator[None]:
    """Live updates look for something new at once: the tests wait for what they show, not for the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("afresh.web.live_updates.TICK_S", 0.2)
        yield


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    with open_mirror(tmp_path_factory.mktemp("mirror")) as found:
        yield found


def drawn(page: Page, name: str) -> None:
    """Wait until a chart is there."""
    page.locator(f"#{name}-chart .main-svg").first.wait_for()


def open_page(page: Page, mirror: Mirror, path: str) -> None:
    page.goto(mirror.url(path))
    for name in DRAWN.get(path, ()):
        drawn(page, name)


def check_looks(page: Page, looks: Iterable[str] = LOOKS, *, whole_tables: bool) -> None:
    """In light and dark colours and on a phone nothing sticks out, and everybody can use it."""
    for look in looks:
        as_seen(page, look)
        if look == "phone" and whole_tables:
            assert cut(page) <= 0, f"a table of {page.url} is cut"
        assert serious(page, look) == [], (page.url, look)


# To look at a page in one way takes a second. All pages have the same colours and layout, so that every run
# looks at the first page in all ways and at each other page in one; the slow suite looks at all in all ways.
OTHERS = {
    "/items": "phone",
    "/changes": "phone",
    "/diff": "dark",
    "/plan": "dark",
    "/sources": "light",
    "/api/docs": "light",
    "/item": "phone",
}
PAGES = [("/", LOOKS), *((path, (look,)) for path, look in OTHERS.items())]
PAGES_IN_ALL_WAYS = [(path, LOOKS) for path in OTHERS]


@pytest.mark.parametrize(
    ("path", "looks"), with_slow_cases([*PAGES, *PAGES_IN_ALL_WAYS], kept=len(PAGES)), ids=str
)
def test_every_page_is_whole_calm_and_usable_by_all(
    browser: Browser, mirror: Mirror, path: str, looks: tuple[str, ...]
) -> None:
    with page_of(browser) as (page, ear):
        open_page(page, mirror, mirror.path_of(path))
        expect(page.locator("#state")).to_have_attribute("data-state", "running")
        if path == "/api/docs":
            page.locator(".operation").first.locator("summary").click()
            expect(page.locator(".operation[open]")).to_contain_text("Answer: StatusOut")
        check_looks(page, looks, whole_tables=path in ("/", "/items", "/sources"))
        assert ear.complaints == []
        hosts = {host.split(":")[0] for host in ear.asked if not host.startswith(("data:", "blob:"))}
        assert hosts == {"127.0.0.1"}  # nothing from anywhere else


def test_the_sources_page_shows_what_real_sources_taught(browser: Browser, stage: Stage) -> None:
    with page_of(browser) as (page, ear):
        page.goto(stage.web.address + "sources")
        hosts = page.locator("[data-source=hosts]")
        expect(hosts).to_contain_text("its ETag changes while the content does not")
        expect(hosts).to_contain_text("2 s apart")
        expect(hosts).to_contain_text("left alone after")
        views = page.locator("[data-source=views]")
        expect(views).to_contain_text(OF_A)
        expect(views).to_contain_text("when an engine runs and it changes")  # none runs
        expect(views).to_contain_text("Nobody looks at them until an engine runs")
        expect(views).not_to_contain_text("when it changes, about")
        papers = page.locator("[data-source=papers]")
        expect(papers).to_contain_text(f"{stage.records} of {stage.records} records seen (100.0 %)")
        expect(papers.get_by_role("region", name="Queries that bring the most")).to_be_visible()
        check_looks(page, ["phone"], whole_tables=True)
        assert ear.complaints == []


def test_what_is_new_shows_without_a_reload(browser: Browser, mirror: Mirror) -> None:
    with page_of(browser) as (page, ear):
        open_page(page, mirror, "/")
        page.evaluate("window.mark = 1")
        as_of, trouble = page.locator("[data-field=as-of]"), page.locator("#trouble")
        before, model = as_of.inner_text(), "document.getElementById('freshness-chart').data[1].y"
        points, breaks = f"{model}.length", f"{model}.filter((value) => value === null).length"
        had = page.evaluate(points)
        expect(trouble).to_contain_text("Nothing fails")
        mirror.rest("429 Too Many Requests")
        mirror.beat(10.0)
        expect(as_of).not_to_have_text(before)
        page.wait_for_function(f"(wanted) => {points} === wanted", arg=had + 1)
        expect(trouble).to_contain_text("429 Too Many Requests")
        mirror.rest()
        mirror.beat(10.0)
        page.wait_for_function(f"(wanted) => {points} === wanted", arg=had + 2)
        expect(trouble).to_contain_text("Nothing fails")
        had = page.evaluate(breaks)
        mirror.beat(400.0)  # no engine ran in between: the line ends, and begins again
        page.wait_for_function(f"(wanted) => {breaks} === wanted", arg=had + 1)
        assert page.evaluate("window.mark") == 1
        assert ear.complaints == []


def test_changes_come_by_themselves_and_show_what_differs(browser: Browser, mirror: Mirror) -> None:
    with page_of(browser) as (page, ear):
        open_page(page, mirror, "/changes")
        rows = page.locator("#changes li")
        before = rows.count()
        # A name is not broken where there is room for it.
        assert rows.first.evaluate("row => row.querySelector('.key').offsetWidth / row.offsetWidth") > 0.5
        summary = rows.locator("summary").first
        summary.focus()
        page.keyboard.press("Enter")
        diff = rows.locator(".diff").first
        expect(diff).to_contain_text("second")
        assert serious(page, "light") == []
        mirror.change(3, b"third\nline")
        mirror.beat(2.0)
        expect(rows).to_have_count(before + 1)
        expect(rows.first).to_contain_text(mirror.key(3))
        expect(diff).to_be_visible()  # what was open stays open
        page.get_by_role("link", name="Compare the versions").first.click()
        page.locator("#layout").select_option("sides")
        page.get_by_role("button", name="Compare").click()
        expect(page.get_by_role("region", name="side by side")).to_contain_text("removed: ")
        check_looks(page, ["phone"], whole_tables=False)
        assert ear.complaints == []


def test_older_changes_say_that_there_are_newer_ones(browser: Browser, mirror: Mirror) -> None:
    with page_of(browser) as (page, ear):
        cursor = mirror.engine.feed.newest(1)[0].cursor
        open_page(page, mirror, f"/changes?before={cursor}")
        expect(page.locator("#newer")).to_contain_text("older changes")
        mirror.change(3, b"fourth\nline")
        mirror.beat(2.0)
        expect(page.locator("#newer")).to_contain_text("There are newer changes")
        page.get_by_role("link", name="Show the newest").click()
        expect(page.locator("#changes li").first).to_contain_text(mirror.key(3))
        assert ear.complaints == []


def test_the_colours_can_be_switched_and_stay(browser: Browser, mirror: Mirror) -> None:
    with page_of(browser, alone=True) as (page, ear):
        open_page(page, mirror, "/items")
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.locator("#theme").click()
        page.locator("#theme").click()
        assert page.locator("html").get_attribute("data-theme") == "dark"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
        page.reload()
        assert page.locator("html").get_attribute("data-theme") == "dark"
        assert ear.complaints == []


def test_the_slider_says_what_another_budget_would_give(browser: Browser, mirror: Mirror) -> None:
    with page_of(browser) as (page, ear):
        open_page(page, mirror, "/plan")
        then = page.locator("#then-freshness")
        before = float(then.inner_text().removesuffix("%"))
        page.locator("#slider").focus()
        for _ in range(20):
            page.keyboard.press("ArrowLeft")
        expect(page.locator("#moves")).to_contain_text("would be given up")
        assert float(then.inner_text().removesuffix("%")) < before
        expect(page.locator("#slider-budget")).to_have_text("37.5/min")
        page.keyboard.press("End")
        assert float(then.inner_text().removesuffix("%")) > before
        page.locator("#objective").select_option("age")
        page.wait_for_url("**/plan?objective=age")
        drawn(page, "cho")
        assert ear.complaints == []


def test_no_item_falls_off_the_chart_in_silence(browser: Browser, tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine:
        filled(engine)
        with dashboard(engine) as client:
            for far in (0, 1):
                check_dots(browser, client, far)


def check_dots(browser: Browser, client: Client, far: int) -> None:
    """Where all items but ``far`` are of like frequency, the others are said to be above the chart."""
    head, rest = client.get("/plan").text.split('id="data">')
    told, tail = rest.split("</script>", 1)
    data = json.loads(told)
    highest = max(filter(None, data["curve_frequency"]))
    young = [highest * (4 + place % 7) for place in range(len(data["dot_rate"]))]
    data["dot_frequency"] = [*young[far:], *[1000 * highest] * far]
    text = f'{head}id="data">{htmlsafe_json_dumps(data)}</script>{tail}'
    with page_of(browser) as (page, ear):
        page.route("**/plan", lambda route: route.fulfill(body=text, content_type="text/html"))
        page.goto(client.address + "plan")
        drawn(page, "cho")
        chart = page.locator("#cho-chart")
        top = page.evaluate("document.getElementById('cho-chart').layout.yaxis.range[1]")
        shown = page.evaluate("document.getElementById('cho-chart').data[0].y")
        assert sum(value > top for value in shown) == far
        assert top < 20 * max(page.evaluate("document.getElementById('cho-chart').data[1].y"))
        assert ("1 item above, up to" in chart.inner_text()) == bool(far)
        assert ear.complaints == []


def test_the_slider_says_what_another_budget_is_worth(browser: Browser, tmp_path: Path) -> None:
    with engine_of(tmp_path, 'benefit = "0.02/s"\n') as engine:
        filled(engine)
        with dashboard(engine) as client, page_of(browser, viewport=PHONE) as (page, ear):
            page.goto(client.address + "plan")
            drawn(page, "budget")
            expect(page.locator("#then-worth")).to_have_text("0")
            page.locator("#slider").focus()
            for _ in range(5):
                page.keyboard.press("ArrowRight")
                assert page.evaluate(TOO_WIDE) <= 0
            page.locator("#slider").focus()
            page.keyboard.press("Home")
            expect(page.locator("#then-worth")).to_contain_text("-")
            expect(page.locator("main")).to_contain_text("Polls that cost more than they earn are not made")
            assert ear.complaints == []


def test_an_action_asks_for_the_token_and_works_with_it(browser: Browser, mirror: Mirror) -> None:
    with page_of(browser, charts=False) as (page, ear):
        page.goto(mirror.url(mirror.item(5)))
        page.locator("#weight").fill("3")
        page.get_by_role("button", name="Set", exact=True).click()
        dialog = page.locator("#token-dialog")
        dialog.locator("input").fill("not-the-token-at-all")
        page.keyboard.press("Enter")
        expect(dialog.locator("#token-problem")).to_contain_text("not the token")
        item = mirror.engine.store.items.get(mirror.key(5))
        assert item is not None
        assert item.weight == 1.0
        dialog.locator("input").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.locator("#toast")).to_have_text("The weight is now 3")
        page.get_by_role("button", name="Pause").click()  # the token is known by now
        expect(page.locator("#toast")).to_have_text("Paused")
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("#toast")).to_have_text("Active again")
        page.get_by_role("button", name="Poll now").click()
        expect(page.locator("#toast")).to_contain_text("polled as soon as")
        # The browser itself notes the answer to the wrong token.
        assert [said for said in ear.complaints if "401 (Unauthorized)" not in said] == []
    item = mirror.engine.store.items.get(mirror.key(5))
    assert item is not None
    assert (item.weight, item.status) == (3.0, "active")


def test_the_budget_is_set_and_an_item_added_with_the_token(browser: Browser, tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine:
        filled(engine)
        with dashboard(engine) as client, page_of(browser, charts=False) as (page, ear):
            page.goto(client.address + "plan")
            expect(page.locator("#then-absorbed")).to_be_empty()
            page.locator("#slider").focus()
            page.keyboard.press("End")
            expect(page.locator("#then-absorbed")).to_contain_text("2/s at most")
            then = page.locator("#then-freshness").inner_text()
            page.get_by_role("button", name="Set this budget").click()
            page.locator("#token-input").fill(TOKEN)
            page.keyboard.press("Enter")
            expect(page.locator("#toast")).to_contain_text("The budget is set")
            expect(page.locator("#today-budget")).to_have_text("128/s")
            expect(page.locator("#today-freshness")).to_have_text(then)
            assert engine.current().budget.requests == 128.0
            page.goto(client.address + "items")
            page.get_by_role("button", name="Add items").click()
            page.evaluate("document.getElementById('add-keys').value = 'https://a.example/\\n'.repeat(10001)")
            page.get_by_role("button", name="Add", exact=True).click()
            expect(page.locator("#toast")).to_contain_text("at most 10,000 at once")
            page.get_by_role("button", name="Add items").click()
            page.locator("#add-keys").fill("https://a.example/new")
            page.get_by_role("button", name="Add", exact=True).click()
            expect(page.locator("#toast")).to_have_text("1 new")
            assert engine.store.items.get("https://a.example/new") is not None
            assert ear.complaints == []


def test_what_a_whole_site_would_add_is_shown_before_it_is_added(browser: Browser, tmp_path: Path) -> None:
    links = "".join(f'<a href="page-{number}.html">{number}</a>' for number in range(230))
    routes = {"/docs/": served_page((links + '<a href="/docs/a/a/a/a/a/">a</a>').encode())}
    with (
        served(routes) as site,
        engine_for(tmp_path, budget="50/s") as engine,
        dashboard(engine) as client,
        page_of(browser, charts=False) as (page, ear),
    ):
        page.goto(client.address + "items")
        page.get_by_role("button", name="Add items").click()
        page.get_by_label("What").select_option("A site, by its links")
        expect(page.locator("#add-hint")).to_contain_text("all pages below them are found by links")
        expect(page.locator("#add-weight-row")).to_be_hidden()
        page.locator("#add-keys").fill(f"{site.url}/docs/\nhttp://169.254.169.254/")
        page.get_by_role("button", name="Preview").click()
        page.locator("#token-input").fill(TOKEN)
        page.keyboard.press("Enter")
        preview = page.locator("#add-preview")
        expect(preview).to_contain_text("231 items would be added; these pages may show")
        expect(preview).to_contain_text(f"{site.url}/docs/page-7.html")
        expect(preview).to_contain_text("… and 31 more")
        expect(preview).to_contain_text("169.254.169.254 is a link-local address, never asked")
        expect(preview).to_contain_text("1 link left out: a path that repeats itself")
        check_looks(page, whole_tables=False)
        assert engine.status().items == 0
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator("#toast")).to_contain_text("1 new; http://169.254.169.254/: refused")
        expect(page.locator("tbody tr")).to_have_count(1)
        assert ear.complaints == []


def test_items_are_searched_and_paged_and_the_token_can_be_refused(browser: Browser, mirror: Mirror) -> None:
    with page_of(browser) as (page, ear):
        page.goto(mirror.url("/items"))
        expect(page.locator("tbody tr")).to_have_count(50)
        page.get_by_role("link", name="Next page").click()
        expect(page.locator("tbody tr")).to_have_count(11)
        page.locator("#text").fill("/p/7")
        page.keyboard.press("Enter")
        expect(page.locator("tbody tr")).to_have_count(1)
        page.locator("#text").fill("nowhere")
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_contain_text("No item matches")
        page.get_by_role("button", name="Add items").click()
        page.locator("#add-keys").fill("http://127.0.0.1:9/new")
        page.get_by_role("button", name="Add", exact=True).click()
        page.locator("#token-cancel").click()
        expect(page.locator("#token-dialog")).to_be_hidden()
        assert mirror.engine.store.items.get("http://127.0.0.1:9/new") is None
        assert ear.complaints == []


def test_an_engine_that_stops_shows_and_so_does_its_return(browser: Browser, tmp_path: Path) -> None:
    with LivingSite([0.1] * 5) as site, engine_for(tmp_path, budget="5/s") as engine:
        engine.add(site.urls())
        with dashboard(engine) as client, page_of(browser, charts=False) as (page, ear):
            page.goto(client.address)
            state, banner = page.locator("#state"), page.locator("#banner")
            expect(state).to_have_attribute("data-state", "none")
            expect(banner).to_contain_text("afresh run")
            for _ in range(2):  # once, and once again after a restart
                with Running(engine):
                    expect(state).to_have_attribute("data-state", "running")
                    expect(banner).to_be_hidden()
                expect(state).to_have_attribute("data-state", "stopped")
                expect(banner).to_be_visible()
            assert ear.complaints == []


def test_a_store_that_is_lost_shows_and_so_does_its_return(browser: Browser, tmp_path: Path) -> None:
    path, aside = tmp_path / "afresh.db", tmp_path / "aside.db"
    with LivingSite([0.1] * 5) as site, engine_for(tmp_path, budget="5/s") as engine:
        engine.add(site.urls())
        with Running(engine), dashboard(engine) as client, page_of(browser, charts=False) as (page, ear):
            page.goto(client.address)
            state, banner = page.locator("#state"), page.locator("#banner")
            expect(state).to_have_attribute("data-state", "running")
            for how in ("moved", "deleted"):
                if how == "deleted":
                    engine.store.upkeep.backup(aside)
                    for file in tmp_path.glob("afresh.db*"):
                        file.unlink()
                else:
                    path.rename(aside)
                expect(state).to_have_text("Store lost")
                expect(banner).to_contain_text("deleted or moved")
                ready = client.get("/readyz")
                assert ready.status == 503
                assert "store lost" in ready.problem()
                assert client.get("/healthz").status == 200
                aside.rename(path)
                expect(state).to_have_attribute("data-state", "running")
                expect(banner).to_be_hidden()
                assert client.get("/readyz").json() == {"ok": True, "engine": "running"}
            assert ear.complaints == []
        assert engine.store.upkeep.check() == []


def test_a_page_opened_while_the_store_is_lost_comes_back_by_itself(browser: Browser, tmp_path: Path) -> None:
    path, aside = tmp_path / "afresh.db", tmp_path / "aside.db"
    with engine_for(tmp_path) as engine:
        filled(engine)
        with dashboard(engine) as client, page_of(browser) as (page, _):
            path.rename(aside)
            page.goto(client.address + "items")
            expect(page.locator("main")).to_contain_text("comes back by itself")
            assert client.get("/api/v1/status").status == 503
            aside.rename(path)
            expect(page.locator("tbody tr")).to_have_count(50)


def test_a_server_that_falls_silent_shows_and_so_does_its_return(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text("[web]\nport = 0\n[[source]]\nname = 'web'\n")
    command = [sys.executable, "-m", "afresh", "-C", str(tmp_path), "serve"]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server,
        page_of(browser, alone=True, charts=False) as (page, _),
    ):
        assert server.stderr is not None
        try:
            address = server.stderr.readline().split()[2]
            page.clock.install()
            page.goto(address)
            state = page.locator("#state")
            expect(state).to_have_attribute("data-state", "none")
            server.send_signal(signal.SIGSTOP)
            page.clock.fast_forward(10_000)  # longer than a server is ever silent
            expect(state).to_have_text("Nothing heard")
            expect(page.locator("#banner")).to_be_visible()
            server.send_signal(signal.SIGCONT)
            expect(state).to_have_attribute("data-state", "none")
            server.terminate()
            assert server.wait(PATIENCE_S) == 128 + signal.SIGTERM
        finally:
            server.kill()  # stopped or not: whatever went wrong, it is not left behind


def test_a_dashboard_that_goes_and_comes_back_is_found_again(browser: Browser, tmp_path: Path) -> None:
    with engine_for(tmp_path) as engine, page_of(browser, charts=False) as (page, _):
        with Server(make_app(engine, TOKEN), listen("127.0.0.1", 0)) as server:
            address = server.address
            page.goto(address)
            state = page.locator("#state")
            expect(state).to_have_attribute("data-state", "none")
        expect(state).to_have_attribute("data-state", "offline")
        expect(page.locator("#banner")).to_contain_text("comes back by itself")
        port = int(address.rstrip("/").rpartition(":")[2])
        with Server(make_app(engine, TOKEN), listen("127.0.0.1", port)):
            expect(state).to_have_attribute("data-state", "none")


def test_the_pages_of_a_cluster_are_whole_and_usable_by_all(browser: Browser, tmp_path: Path) -> None:
    with cluster_dashboard(tmp_path) as (web, _), page_of(browser, alone=True) as (page, ear):
        page.goto(web.address)
        page.get_by_role("link", name="Shards").click()
        expect(page.get_by_text("nothing is heard of it")).to_be_visible()
        check_looks(page, ("dark", "phone"), whole_tables=True)
        page.get_by_role("link", name="Items", exact=True).click()
        expect(page.get_by_role("button", name="Add items")).to_have_count(0)
        page.get_by_role("link", name="Next page").click()
        page.locator("td.key a").first.click()
        expect(page.get_by_role("heading", name="Versions")).to_be_visible()
        check_looks(page, ("light",), whole_tables=False)
        assert ear.complaints == []
        assert ear.asked <= {web.host, ""}

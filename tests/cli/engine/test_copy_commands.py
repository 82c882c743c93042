"""``afresh get`` and ``afresh export``: what they print and write."""

from __future__ import annotations

import json
from pathlib import Path

from pyarrow import parquet
from tests.cli.conftest import Afresh
from tests.cli.engine.conftest import QUICK
from tests.servers.site import Answer, Handler, Seen, Site, page
from tests.sources.texts.documents import article, pdf


def test_get_that_polls_says_nothing_more(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/a")
    ran = mirror("get", f"{site.url}/a", "--max-age", "0s", "--allow-private")
    assert (ran.code, ran.out, ran.err) == (0, "a", "")
    ran = mirror("get", f"{site.url}/a", "--max-age", "0s")
    assert ran.out == "a"  # an old copy is more than none
    assert "old: refused: 127.0.0.1 is a loopback address" in ran.err


def test_a_folder_of_copies_says_what_each_file_is(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    mirror("add", f"{site.url}/a")
    mirror("run", "--once", *QUICK)
    mirror("export", "--format", "dir", "-o", "copies")
    (row,) = map(json.loads, (tmp_path / "copies" / "index.jsonl").read_text(encoding="utf-8").splitlines())
    assert list(row) == ["item", "source", "file", "polled", "changed", "media_type", "version"]
    assert (tmp_path / "copies" / row["file"]).read_bytes() == b"a"
    assert (row["media_type"], row["version"], row["changed"]) == ("text/html", 1, None)


def test_polls_are_exported_as_estimate_reads_them(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/a")
    mirror("run", "--once", *QUICK)
    ran = mirror("export", "--format", "polls", "-o", "polls.csv")
    assert (ran.code, ran.err) == (0, "1 poll\n")
    assert mirror("export", "--format", "polls").out.startswith("item,time,changed,modified,count,source\n")
    found = mirror("estimate", "polls.csv", "--json")
    assert (found.code, json.loads(found.out)["items"]) == (0, 1)


def test_get_prints_the_text_of_a_page(mirror: Afresh, site: Site) -> None:
    site.routes["/news"] = page(article("The river rose by two metres. " * 9, clock="1"))
    mirror("add", f"{site.url}/news")
    mirror("run", "--once", *QUICK)
    text, markdown = (mirror("get", f"{site.url}/news", f"--{form}").out for form in ("text", "markdown"))
    assert "The river rose" in text
    assert "Subscribe" not in text + markdown
    assert "# Flood" in markdown
    told = json.loads(mirror("get", f"{site.url}/news", "--text", "--json").out)
    assert (told["text"], told["change_size"], told["version"]) == (text, None, 1)
    ran = mirror("get", f"{site.url}/news", "--text", "--markdown")
    assert (ran.code, ran.err) == (2, "afresh: --text and --markdown exclude each other\n")


def test_a_change_has_a_size_and_a_difference_of_texts(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/news")
    for text in ("The river rose by two metres today. ", "The river fell by two metres today. "):
        site.routes["/news"] = page(article(text * 9, clock=text[10:14]))
        mirror("get", f"{site.url}/news", "--max-age", "0s", "--allow-private")
    told = json.loads(mirror("get", f"{site.url}/news", "--json").out)
    assert told["version"] == 2
    assert 0.1 < told["change_size"] < 0.5  # 3 shingles of 7, in a page with 70 others
    lines = mirror("get", f"{site.url}/news", "--diff", "--text").out.splitlines()
    assert [line[:16] for line in lines if line[0] in "+-"][2:] == ["-The river rose ", "+The river fell "]


def test_export_writes_texts_and_says_which_copies_have_none(
    mirror: Afresh, site: Site, tmp_path: Path
) -> None:
    site.routes["/doc"] = page(pdf("Hello page"), Content_Type="application/pdf")
    site.routes["/png"] = page(b"\x89PNG\0", Content_Type="image/png")
    mirror("add", f"{site.url}/doc", f"{site.url}/png")
    mirror("run", "--once", *QUICK)
    ran = mirror("export", "--text")
    rows = {row["item"][-3:]: row for row in map(json.loads, ran.out.splitlines())}
    assert ran.err == "1 copy without text: the output says why\n2 copies\n"
    assert (rows["doc"]["text"], rows["png"]["text"]) == ("Hello page", None)
    assert rows["png"]["problem"] == "no text can be taken from image/png"
    mirror("export", "--markdown", "--format", "dir", "-o", "texts")
    index = (tmp_path / "texts" / "index.jsonl").read_text(encoding="utf-8").splitlines()
    files = {row["item"][-3:]: row["file"] for row in map(json.loads, index)}
    assert files["png"] is None
    assert (tmp_path / "texts" / files["doc"]).read_text() == "Hello page"
    assert files["doc"].endswith(".md")
    assert mirror("export", "--format", "polls", "--text").code == 2


def test_a_login_form_in_place_of_a_page_is_reported_and_the_copy_kept(mirror: Afresh, site: Site) -> None:
    site.routes["/old"] = redirect("/news")
    site.routes["/news"] = page(b"the news")
    site.routes["/login"] = page(b"<title>Log in</title><form><input type=password></form>")
    mirror("add", f"{site.url}/old")
    mirror("run", "--once", *QUICK)
    told = json.loads(mirror("get", f"{site.url}/old", "--json").out)
    assert (told["address"], told["version"]) == (f"{site.url}/news", 1)
    assert f"{site.url}/news" in "".join(mirror("why", f"{site.url}/old").out.split())
    site.routes["/news"] = redirect("/login?back=news")
    ran = mirror("get", f"{site.url}/old", "--max-age", "0s", "--allow-private")
    assert ran.out == "the news"
    assert f"leads to a login page: {site.url}/login" in ran.err
    assert f"{site.url}/login" in "".join(mirror("why", f"{site.url}/old").out.split())


def redirect(target: str) -> Handler:
    async def handler(_seen: Seen, answer: Answer) -> None:
        await answer.send(b"", 302, Location=target)

    return handler


def test_only_what_changed_since_a_cursor_is_exported_also_as_parquet(
    mirror: Afresh, site: Site, tmp_path: Path
) -> None:
    mirror("add", f"{site.url}/a", f"{site.url}/b")
    mirror("run", "--once", *QUICK)
    cursor = mirror("changes", "--cursor").out.strip()
    assert mirror("export", "--since", cursor).out == ""
    site.routes["/a"] = page(b"other")
    mirror("get", f"{site.url}/a", "--max-age", "0s", "--allow-private")
    (row,) = map(json.loads, mirror("export", "--since", cursor).out.splitlines())
    assert (row["item"], row["version"]) == (f"{site.url}/a", 2)
    assert mirror("export", "--format", "parquet", "-o", "all.parquet").err == "2 copies\n"
    found = {row["item"]: row for row in parquet.read_table(tmp_path / "all.parquet").to_pylist()}
    assert {item: row["content"] for item, row in found.items()} == {
        f"{site.url}/a": b"other",
        f"{site.url}/b": b"b",
    }
    assert mirror("export", "--format", "parquet", "--since", cursor, "-o", "some.parquet").err == "1 copy\n"
    assert mirror("export", "--since", "1-1-00000000").code == 1
    assert mirror("export", "--since", cursor, "--format", "polls").code == 2

"""``afresh add --import`` reads the lists of other programs, and ``--dry-run`` shows what would be added."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh
from tests.cli.engine.conftest import QUICK, mirror, site
from tests.servers.site import Site, page

__all__ = ["mirror", "site"]

WATCHES: dict[str, dict[str, dict[str, object]]] = {
    "watching": {
        "1": {
            "url": "https://a.test/price",
            "include_filters": ["#price", "xpath://b"],
            "time_between_check": {"hours": 6, "minutes": None},
            "ignore_text": ["Updated.*"],
            "headers": {},
            "fetch_backend": "html_webdriver",
        },
        "2": {
            "url": "https://a.test/off",
            "paused": True,
            "include_filters": ["xpath://b", "//i[1]"],
            "time_between_check_use_default": True,
        },
        "3": {"url": "file:///etc/passwd"},
        "4": {"url": "https://a.test/{{ day }}"},
        "5": {"url": "https://a.test/last"},
    }
}
JOBS = """
name: prices
url: https://a.test/price
filter:
  - css: {selector: "#price"}
---
navigate: https://a.test/app
filter: css:main,strip
---
name: disk
command: df
---
url: https://a.test/path
use_browser: true
filter:
  - xpath: "//div[@class='a']"
  - html2text
  - grep: total
---
url: https://a.test/element
filter: element-by-id:content,strip
"""
CSV = "url,weight,min_interval,max_interval,selector\nhttps://a.test/x,3,1h,2d,main\nhttps://a.test/y,,,,\n"
OPML = "<opml><body><outline text='t'><outline xmlUrl='{url}/feed'/></outline></body></opml>"
CDX = """ CDX N b a m s k S V g
test,a)/p 20240101000000 http://a.test/p text/html 200 AAA 1 2 x
test,a)/p 20240103000000 http://a.test/p text/html 200 BBB 1 2 x
test,a)/p 20240102000000 http://a.test/p text/html 200 AAA 1 2 x
test,a)/gone 20240102000000 http://a.test/gone text/html 404 CCC 1 2 x
"""


def record(kind: str, address: str, date: str, block: bytes, **more: str) -> bytes:
    heads = {"WARC-Type": kind, "WARC-Target-URI": address, "WARC-Date": date, **more}
    lines = [f"{name}: {value}" for name, value in heads.items()] + [f"Content-Length: {len(block)}"]
    return "\r\n".join(["WARC/1.1", *lines]).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def listed(mirror: Afresh, *columns: str) -> list[list[object]]:
    found = json.loads(mirror("list", "--json", "--columns", ",".join(columns)).out)["items"]
    return [[item[name] for name in columns] for item in found]


def test_changedetection(mirror: Afresh, tmp_path: Path) -> None:
    (tmp_path / "url-watches.json").write_text(json.dumps(WATCHES))
    ran = mirror("add", "--import", "url-watches.json")
    assert ran.code == 0, ran.err
    said = " ".join(ran.err.split())
    assert "https://a.test/price: its filter 'xpath://b' is not taken over" in said
    assert "its ignore_text is not taken over; see the setting ignore of a source" in said
    assert 'it was rendered by a browser; see the setting render = "auto" of a source' in said
    assert "'file:///etc/passwd': not an address" in said
    assert "'https://a.test/{{ day }}' contains blanks" in said  # and does not keep the others out
    assert listed(mirror, "item", "status", "max_interval", "selector") == [
        ["https://a.test/price", "active", 0.25, "#price"],
        ["https://a.test/off", "paused", None, "(//b)|(//i[1])"],
        ["https://a.test/last", "active", None, ""],
    ]


def backup(path: Path, files: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)


@pytest.mark.parametrize("is_new", [False, True])
def test_a_backup_of_changedetection(mirror: Afresh, tmp_path: Path, is_new: bool) -> None:
    watches = [WATCHES["watching"]["1"], WATCHES["watching"]["2"]]
    texts = {f"{number}/watch.json": json.dumps(one) for number, one in enumerate(watches)}
    old = {"url-watches.json": json.dumps(WATCHES), "url-list.txt": "https://a.test/price", "1/a.html": "x"}
    backup(tmp_path / "backup.zip", {"changedetection.json": "{}", **texts} if is_new else old)
    assert mirror("add", "--import", "backup.zip").code == 0
    assert [key for (key,) in listed(mirror, "item")][:2] == ["https://a.test/price", "https://a.test/off"]
    backup(tmp_path / "other.zip", {"notes.txt": "nothing"})
    assert "no url-watches.json in it" in mirror("add", "--import", "other.zip").err


def test_urlwatch_and_webchanges(mirror: Afresh, tmp_path: Path) -> None:
    (tmp_path / "urls.yaml").write_text(JOBS)
    ran = mirror("add", "--import", "urls.yaml")
    assert ran.code == 0, ran.err
    said = " ".join(ran.err.split())
    assert "job 3 (disk): has no url" in said
    assert "https://a.test/path: its filter 'grep' is not taken over" in said
    assert "https://a.test/path: it was rendered by a browser" in said
    assert "html2text" not in said
    assert listed(mirror, "item", "selector") == [
        ["https://a.test/price", "#price"],
        ["https://a.test/app", "main"],
        ["https://a.test/path", "//div[@class='a']"],
        ["https://a.test/element", "#content"],
    ]


def test_yaml_without_a_parser_names_it(
    mirror: Afresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "urls.yaml").write_text(JOBS)
    monkeypatch.setattr("afresh.cli.engine.imports.urlwatch.find_spec", lambda _: None)
    ran = mirror("add", "--import", "urls.yaml")
    assert ran.code == 2
    assert "need the package PyYAML: pip install pyyaml" in ran.err


def test_csv_and_a_dry_run(mirror: Afresh, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(CSV)
    assert mirror("add", "https://a.test/y").code == 0
    ran = mirror("add", "--import", "items.csv", "--dry-run")
    assert (ran.code, ran.out) == (0, "https://a.test/x\n")
    assert "would add 1, 1 known already" in ran.err
    assert len(listed(mirror, "item")) == 1
    assert mirror("add", "--import", "items.csv").code == 0
    columns = ("item", "weight", "min_interval", "max_interval", "selector")
    assert listed(mirror, *columns)[1] == ["https://a.test/x", 3, 1 / 24, 2, "main"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "url,wieght\nx,1", "unknown column 'wieght': did you mean 'weight'?"),
        ("a.csv", "url,weight\nhttps://a.test/,x", "a.csv, row 2: column weight: 'x' is not a number"),
        ("a.csv", "url,max_interval\nhttps://a.test/,soon", "a.csv, row 2: 'soon' is not a duration"),
        ("a.json", "[]", "a.json: is not the url-watches.json"),
        ("a.zip", "PK nothing", "a.zip: is not a whole ZIP file"),
        ("a.yaml", "a: [", "a.yaml: is not YAML"),
        ("a.opml", "<opml/>", "a.opml: has no outline with an xmlUrl"),
        ("a.cdx", "nothing", "a.cdx: has no line with a timestamp"),
        ("a.warc", "nothing", "a.warc: is not a whole WARC file"),
        ("a.txt", "nothing", "unknown kind of file"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_it(
    mirror: Afresh, tmp_path: Path, name: str, text: str, words: str
) -> None:
    (tmp_path / name).write_text(text)
    ran = mirror("add", "--import", name)
    assert ran.code in (1, 2)
    assert words in ran.err
    assert ran.err.count("\n") == 1


def test_opml_adds_what_its_feeds_list(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    text = f"<rss><channel><item><link>{site.url}/b</link></item></channel></rss>"
    site.routes["/feed"] = page(text.encode(), Content_Type="application/rss+xml")
    (tmp_path / "feeds.opml").write_text(OPML.format(url=site.url))
    ran = mirror("add", "--import", "feeds.opml", "--allow-private", "--dry-run")
    assert (ran.code, ran.out) == (0, f"{site.url}/b\n")
    assert listed(mirror, "item") == []
    assert mirror("add", "--import", "feeds.opml", "--allow-private").code == 0
    assert listed(mirror, "item") == [[f"{site.url}/b"]]


def test_captures_of_an_archive_become_polls(mirror: Afresh, tmp_path: Path) -> None:
    (tmp_path / "a.cdx").write_text(CDX)
    ran = mirror("add", "--import", "a.cdx", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out) == {"new": 1, "items": 1, "polls": 3}
    assert listed(mirror, "item", "changes") == [["http://a.test/p", 1]]
    ((rate,),) = listed(mirror, "rate")
    assert isinstance(rate, float)
    assert rate > 0.05
    assert json.loads(mirror("add", "--import", "a.cdx", "--json").out)["polls"] == 0  # once is enough


def test_responses_of_a_warc_file(mirror: Afresh, tmp_path: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    records = [
        record("warcinfo", "", "2024-01-01T00:00:00Z", b"software: x"),
        record("response", "http://a.test/p", "2024-01-01T00:00:00Z", answer + b"one"),
        record("response", "http://a.test/p", "2024-01-02T00:00:00Z", answer + b"two"),
        record("response", "http://a.test/q", "2024-01-02T00:00:00Z", b"HTTP/1.1 404 No\r\n\r\n"),
    ]
    (tmp_path / "a.warc.gz").write_bytes(b"".join(map(gzip.compress, records)))
    assert mirror("add", "--import", "a.warc.gz").code == 0
    assert listed(mirror, "item", "changes") == [["http://a.test/p", 1]]


def test_a_dry_run_shows_the_links_of_the_start_page(mirror: Afresh, site: Site) -> None:
    links = '<a href="/docs/a"></a><a href="/docs/b"></a><a href="/c">outside</a>'
    site.routes["/docs/"] = page(links.encode())
    ran = mirror("add", "--follow", f"{site.url}/docs/", "--dry-run", "--allow-private")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines() == [f"{site.url}/docs/{name}" for name in ("", "a", "b")]
    assert "would add 3, 0 known already; these pages may show more" in ran.err
    assert listed(mirror, "item") == []
    asked = len(site.seen)
    assert mirror("run", "--once", *QUICK).code == 0  # nothing is remembered
    assert len(site.seen) == asked

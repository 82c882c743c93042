"""Files of other programs that are broken or hostile end in words or are read, and never in a traceback."""

from __future__ import annotations

import gzip
import json
import resource
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.cli.engine.imports.changedetection import read_backup, read_changedetection
from afresh.cli.engine.imports.csv_list import read_csv
from afresh.cli.engine.imports.imported import Reader, read_import
from afresh.cli.engine.imports.opml import read_opml
from afresh.cli.engine.imports.urlwatch import read_urlwatch
from afresh.cli.engine.imports.web_archives import read_cdx, read_warc
from afresh.values.errors import AfreshError, InputError

HUGE = "9" * 400
RECORD = (
    "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {at}\r\nWARC-Date: {date}\r\nContent-Length: {size}"
)

leaves = st.none() | st.booleans() | st.integers() | st.just(int(HUGE)) | st.text(max_size=8)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
watches = st.fixed_dictionaries(
    {"url": values | st.just("https://a.test/")},
    optional={
        name: values | st.dictionaries(st.sampled_from(["hours", "days"]), values)
        for name in ("include_filters", "time_between_check", "paused", "time_between_check_use_default")
    },
)
about = values | st.fixed_dictionaries({"url": values, "status": st.just("200") | values, "digest": values})
stamps = st.sampled_from(["20240101000000", "2024", "99991231235959", "00000000000000", HUGE])


def read_or_refuse(reader: Reader, content: bytes) -> None:
    problem = "given"
    try:
        reader(content, "given")
    except AfreshError as error:
        problem = str(error)
    assert problem.startswith("given")
    assert len(problem) < 1000


@given(st.lists(watches, max_size=3))
def test_lists_of_changedetection(found: list[object]) -> None:
    watching = {str(number): each for number, each in enumerate(found)}
    read_or_refuse(read_changedetection, json.dumps({"watching": watching}).encode())


@given(
    st.lists(
        st.fixed_dictionaries({"url": values}, optional={"filter": values, "name": values, "enabled": values})
    )
)
def test_jobs_of_urlwatch(jobs: list[object]) -> None:
    read_or_refuse(read_urlwatch, json.dumps(jobs).encode())


@given(st.lists(st.tuples(stamps, about), max_size=3))
def test_indexes_of_archives(lines: list[tuple[str, object]]) -> None:
    text = "\n".join(f"t,a)/ {stamp} {json.dumps({'a': given})[6:-1] or '{}'}" for stamp, given in lines)
    read_or_refuse(read_cdx, text.encode())
    read_or_refuse(read_cdx, b"t,a)/ 20240101000000 " + b'{"url":' * 100_000)


@given(
    kind=st.sampled_from(["response", "revisit", "other"]),
    at=st.sampled_from(["http://a.test/", "<http://a.test/>", "\x00", "file:///x", ""]),
    date=st.sampled_from(
        ["2024-01-01T00:00:00Z", "", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"]
    ),
    size=st.sampled_from(["0", "7", "-5", HUGE, "²", "x", "99999999"]),
    block=st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n\r\na", b"HTTP/1.1 " + HUGE.encode()]),
)
def test_archives(kind: str, at: str, date: str, size: str, block: bytes) -> None:
    content = RECORD.format(kind=kind, at=at, date=date, size=size).encode() + b"\r\n\r\n" + block
    read_or_refuse(read_warc, content)
    read_or_refuse(read_warc, gzip.compress(content)[:-4])


@pytest.mark.parametrize(
    "reader", [read_opml, read_cdx, read_warc, read_csv, read_changedetection, read_backup, read_urlwatch]
)
@settings(max_examples=30)
@given(data=st.binary(max_size=200))
def test_any_bytes(reader: Reader, data: bytes) -> None:
    for content in (data, b"WARC/1.1\r\n" + data, b"<opml>" + data, b"\x1f\x8b\x08" + data, b"item\n" + data):
        read_or_refuse(reader, content)


@pytest.mark.parametrize(
    "content",
    [
        b'<!DOCTYPE a [<!ENTITY b "c">]><opml><outline xmlUrl="&b;"/></opml>',
        b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><opml><outline xmlUrl="&b;"/></opml>',
        b'<?xml version="1.0" encoding="nothing"?><opml/>',
        b"<outline>" * 50_000,
    ],
    ids=["entity", "entity of a file", "unknown encoding", "deep"],
)
def test_lists_of_feeds_without_entities(content: bytes) -> None:
    with pytest.raises(InputError, match="is not OPML"):
        read_opml(content, "feeds.opml")


def test_a_small_archive_that_unpacks_to_a_gigabyte_takes_little_memory(tmp_path: Path) -> None:
    """The record that is too large is refused before it is read."""
    head = RECORD.format(
        kind="response", at="http://a.test/", date="2024-01-01T00:00:00Z", size=2_000_000_000
    )
    bomb = tmp_path / "a.warc.gz"
    bomb.write_bytes(gzip.compress(f"{head}\r\n\r\n".encode() + bytes(20_000_000)))
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="Content-Length '2000000000'"):
        read_import(str(bomb))
    bomb.write_bytes(gzip.compress(b"WARC/1.1\r\nA: " + b"b" * 20_000_000))
    with pytest.raises(InputError, match="more than 100000 bytes"):
        read_import(str(bomb))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 100_000


def test_a_file_that_unpacks_to_more_than_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.cli.engine.imports.imported._MOST_BYTES", 1000)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"item\n" + bytes(5000)))
    with pytest.raises(InputError, match="larger than 1 GB"):
        read_import(str(tmp_path / "a.csv.gz"))


def aliases(levels: int, form: str) -> str:
    """Return YAML whose values double with each level: ``form`` refers twice to the level before."""
    lines = ["a0: &a0 {x: y}"]
    lines += [f"a{n}: &a{n} {form.format(f'*a{n - 1}')}" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        aliases(40, "[{0}, {0}]") + "\nname: *a39",
        "url: 2020-99-99",
        "url: https://a.test/\nname: " + "9" * 6000,
        "a: &a [*a]\nname: *a",
    ],
    ids=["aliases", "date", "number", "endless"],
)
def test_lists_of_urlwatch_that_are_not_what_they_seem(text: str) -> None:
    read_or_refuse(read_urlwatch, text.encode())


def test_a_file_that_takes_too_much_to_read_ends_with_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """YAML merges copy what they refer to: 1 KB becomes gigabytes."""
    monkeypatch.setattr("afresh.cli.engine.imports.imported._LEAST_MEMORY_BYTES", 30_000_000)
    jobs = tmp_path / "jobs.yaml"
    jobs.write_text(aliases(40, "{{<<: [{0}, {0}]}}"))
    with pytest.raises(InputError, match=r"jobs.yaml: cannot be read: parsing it"):
        read_import(str(jobs))


def test_errors_of_readers_pass_from_their_process(tmp_path: Path) -> None:
    wrong = tmp_path / "a.csv"
    wrong.write_text("itme\nx\n")
    with pytest.raises(InputError, match="unknown column 'itme'"):
        read_import(str(wrong))
    wrong.write_text("item,weight\nhttps://a.test/,2\n")
    assert read_import(str(wrong)).items[0].weight == 2.0

"""The attacks of ``bench attacks``: what the hostile side does, and how to see that it failed."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import os
import socket
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass

from tests.servers.site import Answer, Seen, page, redirect
from tests.sources.parsing.attacks import many_agents_and_rules

from afresh.engine.app import open_engine
from bench.attack_stage import SECRET, Pages, Stage

_FOR_S, _PARSE_S = 6.0, 14.0


def _nothing(_stage: Stage) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Attack:
    """``run`` prepares, starts the engine and attacks it; ``problem`` says what the attack achieved."""

    point: int
    name: str
    run: Callable[[Stage, Pages], None]
    problem: Callable[[Stage], str] = _nothing


def _sitemap(urls: list[str]) -> bytes:
    rows = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'.encode()


def long_keys(stage: Stage, pages: Pages) -> None:
    urls = [stage.url(f"/{'a-' * 3_900}{number}") for number in range(400)]
    pages.by_path["/long.xml"] = page(_sitemap(urls), Content_Type="application/xml")
    stage.configure(source=f'sitemaps = ["{stage.url("/long.xml")}"]')
    stage.start()
    stage.wait(seconds=_FOR_S)


def robots(stage: Stage, pages: Pages) -> None:
    pages.by_host["127.0.0.2", "/robots.txt"] = page(many_agents_and_rules(18_000)[:511_000])
    pages.by_path["/x"] = page(b"x")
    stage.configure()
    stage.add(stage.url("/x", "127.0.0.2"))
    stage.start()
    stage.wait(seconds=_FOR_S)


def credentials(stage: Stage, pages: Pages) -> None:
    feed = f"""<rss version="2.0"><channel><title>t</title>
        <item><link>{stage.url("/leak", "127.0.0.3")}</link></item></channel></rss>"""
    pages.by_path["/feed"] = page(feed.encode(), Content_Type="application/rss+xml")
    pages.by_path["/away"] = redirect(stage.url("/leak", "127.0.0.3"))
    stage.configure(source=f'feeds = ["{stage.url("/feed")}"]\nheaders = {{ "X-Key" = "env:KEY" }}')
    stage.add(stage.url("/away"))
    stage.start()
    stage.wait(seconds=_FOR_S)


def leaked(stage: Stage) -> str:
    hosts = {seen.headers["host"].partition(":")[0] for seen in stage.site.seen if "x-key" in seen.headers}
    return "" if hosts == {"127.0.0.1"} else f"the key was sent to {sorted(hosts)}"


def hooks_after_kills(stage: Stage, pages: Pages) -> None:
    count = iter(range(10**9))

    async def changing(_seen: Seen, answer: Answer) -> None:
        await answer.send(b"%d" % next(count), Content_Type="text/plain")

    pages.by_path["/v"] = changing
    (stage.folder / "told.py").write_text(
        f"log = open({str(stage.folder / 'told')!r}, 'a', buffering=1)\n"
        "def write(change):\n    log.write(f'{change.item} {change.version}\\n')\n"
    )
    stage.configure(source='on_change = "told:write"', run='hook_timeout = "2s"\nlease = "2s"')
    with open_engine(stage.folder) as engine:
        engine.add([stage.url("/v")])
        from afresh.values.items import ItemChange

        engine.set([stage.url("/v")], ItemChange(max_interval_s=0.05))
    for _ in range(4):
        stage.start()
        stage.wait(seconds=1.0)
        stage.kill()
        stage.forget_times()
    stage.start()
    stage.wait(seconds=_FOR_S)


def out_of_order(stage: Stage) -> str:
    told = [line.split() for line in (stage.folder / "told").read_text().splitlines()]
    numbers = [int(number) for key, number in told if key.endswith("/v")]
    if numbers != sorted(numbers) or len(numbers) < 10:
        return f"hooks were told {numbers[:30]}"
    return ""


def parsers(stage: Stage, pages: Pages) -> None:
    pages.by_path["/nested"] = page(b"<main>" * 300_000)
    pages.by_path["/digits"] = page(b"1" * 80_000)
    pages.by_path["/start"] = page(b"<div>" * 200_000)
    stage.configure(
        after=f"""
[[source]]
name = "heavy"
delay = "0s"
allow_private = true
selectors = ["main"]
ignore = ['\\d+ visitors online']
discover = ["{stage.url("/start", "127.0.0.4")}"]
"""
    )
    stage.add(stage.url("/nested", "127.0.0.4"), stage.url("/digits", "127.0.0.5"), source="heavy")
    stage.start()
    stage.wait(seconds=_PARSE_S)


def links(stage: Stage, pages: Pages) -> None:
    """20,000 links of 300 characters, which are others each time, on a page whose links are followed."""
    count = iter(range(10**9))

    def body() -> bytes:
        number = next(count)
        return b"".join(b"<a href=/%s%d-%d>" % (b"%41" * 100, number, n) for n in range(20_000))

    bodies = [body() for _ in range(3)]

    async def changing(_seen: Seen, answer: Answer) -> None:
        await answer.send(bodies[next(count) % 3], Content_Type="text/html")

    pages.by_path["/links/"] = changing
    start = stage.url("/links/", "127.0.0.4")
    stage.configure(
        after=f"""
[[source]]
name = "site"
delay = "0s"
min_interval = "0s"
allow_private = true
follow = "{stage.url("/", "127.0.0.4")}"
"""
    )
    stage.add(start, source="site")
    stage.start()
    stage.wait(seconds=_PARSE_S)


def slow_hosts(stage: Stage, pages: Pages) -> None:
    async def drip(_seen: Seen, answer: Answer) -> None:
        await answer.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while True:
            await answer.raw(b"x")
            await asyncio.sleep(1.0)

    pages.by_path["/slow"] = drip
    stage.configure(source="respect_robots = false")
    stage.add(*(stage.url("/slow", f"127.1.{n // 200}.{n % 200 + 1}") for n in range(300)))
    stage.start()
    stage.wait(seconds=_PARSE_S)


def hanging_functions(stage: Stage, pages: Pages) -> None:
    del pages
    (stage.folder / "hangs.py").write_text(
        "import time\ndef hang(_given):\n    while True:\n        time.sleep(1000)\n"
    )
    stage.configure(
        source='on_change = "hangs:hang"',
        run='hook_timeout = "2s"\ndrain_timeout = "2s"',
        after='[[source]]\nname = "own"\nkind = "python"\ncall = "hangs:hang"\ntimeout = "2s"\n',
    )
    stage.add(*(f"item{number}" for number in range(40)), source="own")
    stage.start()
    stage.wait(seconds=_FOR_S)


def bad_rows(stage: Stage, pages: Pages) -> None:
    del pages
    with closing(sqlite3.connect(stage.folder / "rows.db")) as table:
        table.execute("CREATE TABLE t (k, v)")
        table.executemany(
            "INSERT INTO t VALUES (?, 1)", [("good",), (b"\xff\x00",), ("nul\0",), ("also good",)]
        )
        table.execute("INSERT INTO t VALUES (CAST(x'ff41' AS TEXT), 1)")
        table.commit()
    stage.configure(
        after=f'[[source]]\nname = "rows"\nkind = "sql"\nurl = "sqlite:{stage.folder}/rows.db"\n'
        'query = "SELECT * FROM t"\nkey = "k"\n'
    )
    stage.start()
    stage.wait(seconds=_FOR_S)


def good_rows_are_missing(stage: Stage) -> str:
    with open_engine(stage.folder, secrets=stage.environment.get) as engine:
        found = engine.store.items.ids(["good", "also good"])
    return "" if len(found) == 2 else f"only {sorted(found)} of the good rows are there"


def bomb(stage: Stage, pages: Pages) -> None:
    body = gzip.compress(gzip.compress(b"http://a.test/1\n" * 3_000_000))
    pages.by_path["/bomb.xml.gz"] = page(body, Content_Type="application/gzip", Content_Encoding="gzip")
    stage.configure(source=f'sitemaps = ["{stage.url("/bomb.xml.gz")}"]')
    stage.start()
    stage.wait(seconds=_FOR_S)


def endless_items(stage: Stage, pages: Pages) -> None:
    for part in range(10):
        urls = [stage.url(f"/i/{part}-{number}") for number in range(50_000)]
        pages.by_path[f"/items{part}.xml.gz"] = page(
            gzip.compress(_sitemap(urls)), Content_Type="application/gzip"
        )
    names = ", ".join(f'"{stage.url(f"/items{part}.xml.gz")}"' for part in range(10))
    stage.configure(source=f"sitemaps = [{names}]")
    stage.start()
    stage.wait(seconds=45.0)


def more_than_allowed(stage: Stage) -> str:
    with open_engine(stage.folder, secrets=stage.environment.get) as engine:
        count = sum(each.items for each in engine.store.items.counts())
    return "" if 50_000 < count <= 100_001 else f"{count} items"


def failing_polls(stage: Stage, pages: Pages) -> None:
    """What false version floors did: every poll fails, and nobody notices."""
    del pages
    stage.configure()
    stage.start()
    stage.wait(seconds=2.0)
    stage.environment["ONCE"] = "1"
    folder = stage.folder / "other"
    folder.mkdir()
    (folder / "afresh.toml").write_text(
        '[[source]]\nname = "web"\nallow_private = true\nrespect_robots = false\n'
    )
    with open_engine(folder) as engine:
        engine.add(["http://127.0.0.1:9/none"])
    code, _ = stage.run_command("-C", str(folder), "run", "--once")
    if code == 0:
        stage.figures.problem = "a round in which every poll failed exits with 0"


def endless_hooks(stage: Stage, pages: Pages) -> None:
    pages.by_path["/n"] = page(b"new")
    script = "yes noise >&2 & sleep 1; exit 0"
    stage.configure(
        source=f'on_change = ["bash", "-c", "{script}"]', run='hook_timeout = "3s"\ndrain_timeout = "2s"'
    )
    stage.add(stage.url("/n"))
    stage.start()
    stage.wait(seconds=_FOR_S)


_NEVER = (
    "http://169.254.169.254/", "http://168.63.129.16/", "http://192.0.0.192/", "http://[fd20:ce::254]/"
)  # fmt: skip
_PRIVATE = ("http://[fec0::1]/", "http://127.1/", "http://0x7f000001/")


def metadata(stage: Stage, pages: Pages) -> None:
    del pages
    stage.configure(after='[[source]]\nname = "public"\ndelay = "0s"\nproxy = "http://127.0.0.1:9"\n')
    stage.add(*_NEVER)
    stage.add(*_PRIVATE, source="public")
    stage.start()
    stage.wait(seconds=_FOR_S)


def not_refused(stage: Stage) -> str:
    with open_engine(stage.folder, secrets=stage.environment.get) as engine:
        keys = [*_NEVER, *_PRIVATE]
        items = engine.store.items.by_id(list(engine.store.items.ids(keys).values()))
    wrong = [item.key for item in items if "refused" not in item.problem and item.status != "refused"]
    return f"not refused: {wrong}" if wrong or len(items) < len(keys) else ""


def idle_sockets(stage: Stage, pages: Pages) -> None:
    del pages
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    stage.configure(more=f"[web]\nport = {port}\n")
    stage.start("--web")
    with ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
        begun_s = time.monotonic()
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        line.request("GET", "/healthz")
        status, took_s = line.getresponse().status, time.monotonic() - begun_s
        line.close()
        if status != 200 or took_s > 1.0:
            stage.figures.problem = f"/healthz answered {status} after {took_s:.1f} s"
        stage.wait(seconds=_FOR_S)


def printed_password(stage: Stage, pages: Pages) -> None:
    del pages
    stage.configure()
    stage.start()
    folder = stage.folder / "other"
    folder.mkdir()
    (folder / "afresh.toml").write_text(f'[store]\nurl = "postgresql://me:{SECRET}@127.0.0.1:9/none"\n')
    _, text = stage.run_command("-C", str(folder), "config", "check", "--json")
    if SECRET in text:
        stage.figures.problem = "config check --json prints the password"


_ODD = ["http://[::1]:9/x", "http://127.0.0.1:9/[/a]", "http://127.0.0.1:9/%1b[31m\u202e"]


def markup(stage: Stage, pages: Pages) -> None:
    del pages
    stage.configure()
    stage.add(*_ODD[:2])
    stage.start()
    stage.wait(seconds=1.0)
    for words in (("status",), ("why", _ODD[1]), ("why", _ODD[0])):
        code, text = stage.run_command(*words)
        if "Traceback" in text or code not in (0, 3):
            stage.figures.problem = f"{words} ended with {code}: {text[-200:]}"
        elif len(words) == 2 and words[1] not in text.replace("\n", ""):
            stage.figures.problem = f"{words[1]} is not shown"


def reflected_secret(stage: Stage, pages: Pages) -> None:
    pages.by_path["/r"] = redirect(stage.url(f"/there?key={SECRET}"), 301)
    pages.by_path["/there"] = page(b"there")
    stage.configure(source='headers = { "X-Key" = "env:KEY" }')
    stage.add(stage.url("/r"))
    stage.start()
    stage.wait(seconds=_FOR_S)


def kept_secret(stage: Stage) -> str:
    files = [path for path in stage.folder.iterdir() if path.is_file()]
    found = [path.name for path in files if SECRET.encode() in path.read_bytes()]
    return f"the secret is in {found}" if found else ""


def terminal_codes(stage: Stage, pages: Pages) -> None:
    evil = b"\x1b]0;owned\x07\xe2\x80\xae"
    pages.by_path["/t"] = page(evil)
    location = "/x\x1b[31m"

    async def evil_move(_seen: Seen, answer: Answer) -> None:
        await answer.raw(
            b"HTTP/1.1 301 X\r\nContent-Length: 0\r\nLocation: " + location.encode() + b"\r\n\r\n"
        )

    pages.by_path["/m"] = evil_move
    stage.configure()
    stage.add(stage.url("/t"), stage.url("/m"), stage.url("/q?\u202etxt"))
    stage.start()
    stage.wait(seconds=2.0)
    for words in (("status",), ("why", stage.url("/m")), ("due",)):
        text = stage.run_command(*words)[1]
        if "\x1b" in text or "\u202e" in text:
            stage.figures.problem = f"{words[0]} prints control characters"


def codes_in_log(stage: Stage) -> str:
    return "the log has control characters" if "\x1b" in stage.log() or "\u202e" in stage.log() else ""


def observed(stage: Stage, pages: Pages) -> None:
    del pages
    stage.configure()
    stage.start()
    deep = '{"item": "a", "content": ' + "[" * 100_000 + "]" * 100_000 + "}"
    number = '{"item": "a", "time": ' + "9" * 1_000_000 + "}"
    good = json.dumps({"item": stage.url("/p"), "time": time.time(), "changed": False})
    code, text = stage.run_command("observe", given=f"{deep}\n{number}\n{good}".encode())
    if "Traceback" in text or code == 0:
        stage.figures.problem = f"observe ended with {code}: {text[-200:]}"
    code, text = stage.run_command("set", stage.url("/p"), "--weight", "1e308")
    if code == 0 or "Traceback" in text:
        stage.figures.problem = f"set --weight 1e308 ended with {code}"


def killed_export(stage: Stage, pages: Pages) -> None:
    body = os.urandom(300_000)
    for number in range(60):
        pages.by_path[f"/e{number}"] = page(body, Content_Type="application/octet-stream")
    stage.configure()
    stage.add(*(stage.url(f"/e{number}") for number in range(60)))
    stage.start()
    stage.wait(seconds=3.0)
    export = stage.command("export", "--format", "dir", "-o", "out")
    out = stage.folder / "out"
    stage.wait(lambda: export.poll() is not None or (out.exists() and len([*out.iterdir()]) > 3))
    export.kill()
    export.wait()
    wrong = [path.name for path in out.iterdir() if not path.name.startswith(".") and path.suffix != ".jsonl"]
    sizes = {(out / name).stat().st_size for name in wrong}
    if not sizes <= {len(body), len(b"honest")}:
        stage.figures.problem = f"truncated files of {sorted(sizes)} bytes"
    code, text = stage.run_command("export", "--format", "dir", "-o", "out")
    if code or any(".part" in path.name for path in out.iterdir()):
        stage.figures.problem = f"the next export ended with {code} or left files: {text[-200:]}"


def open_files(stage: Stage, pages: Pages) -> None:
    del pages
    folder = stage.folder / "new"
    code, text = stage.run_command("init", str(folder))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir() if path.is_file()}
    if code or set(modes.values()) != {0o600}:
        stage.figures.problem = f"files of the project: {modes} {text[-100:] if code else ''}"
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    stage.configure(
        more=f'[web]\nport = {port}\nhost = "0.0.0.0"\ntoken = "env:KEY"\nnames = ["127.0.0.1"]\n'
    )
    stage.start("--web")
    stage.wait(lambda: _status(port, "/") is not None)
    if _status(port, "/") not in (401, 403) or _status(port, "/api/v1/status") not in (401, 403):
        stage.figures.problem = "the dashboard may be read without a token from other machines"


def _status(port: int, path: str) -> int | None:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        line.request("GET", path)
        return line.getresponse().status
    except ConnectionError:
        return None
    finally:
        line.close()


ATTACKS = (
    Attack(1, "long keys", long_keys),
    Attack(2, "robots.txt of agents and rules", robots),
    Attack(3, "credentials for named hosts", credentials, leaked),
    Attack(4, "hooks after kill -9", hooks_after_kills, out_of_order),
    Attack(5, "HTML, patterns and discovery", parsers),
    Attack(6, "300 slow hosts", slow_hosts),
    Attack(7, "functions that hang", hanging_functions),
    Attack(8, "bad rows of a query", bad_rows, good_rows_are_missing),
    Attack(9, "gzip in gzip", bomb),
    Attack(10, "500,000 items in sitemaps", endless_items, more_than_allowed),
    Attack(11, "every poll fails", failing_polls),
    Attack(12, "hook that writes endlessly", endless_hooks),
    Attack(13, "metadata services", metadata, not_refused),
    Attack(14, "400 idle sockets", idle_sockets),
    Attack(15, "password in config check", printed_password),
    Attack(16, "markup in keys", markup),
    Attack(17, "reflected secret", reflected_secret, kept_secret),
    Attack(18, "control characters", terminal_codes, codes_in_log),
    Attack(19, "deep JSON and huge weights", observed),
    Attack(20, "export that is killed", killed_export),
    Attack(21, "files and pages for others", open_files),
    Attack(22, "20,000 long links on a page", links),
)

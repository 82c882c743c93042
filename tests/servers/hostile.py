"""Everything that a server can do wrong, one path each; ``hostile_routes`` names them all."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from itertools import count

from tests.servers.site import Answer, Handler, Seen, page, redirect

GIGABYTE = 1 << 30
_ZEROS = bytes(1 << 20)
_LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "ha">'
    + b"".join(b'<!ENTITY %c "%s">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(9))
    + b"]><urlset><url><loc>http://a.test/&j;</loc></url></urlset>"
)


async def stall(_seen: Seen, answer: Answer) -> None:
    """Accepts and never answers."""
    await answer.hang()


async def stall_in_headers(_seen: Seen, answer: Answer) -> None:
    """Begins its headers and falls silent."""
    await answer.raw(b"HTTP/1.1 200 OK\r\nContent-Ty")
    await answer.hang()


async def stall_in_body(_seen: Seen, answer: Answer) -> None:
    """Falls silent in the middle of the body."""
    await answer.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of")
    await answer.hang()


async def drip(_seen: Seen, answer: Answer) -> None:
    """Never silent for long, never finished."""
    await answer.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        await answer.raw(b".")
        await asyncio.sleep(0.01)


async def drop(_seen: Seen, answer: Answer) -> None:
    """Hangs up without a word."""
    answer.hang_up()


async def half(_seen: Seen, answer: Answer) -> None:
    """Hangs up in the middle of the body."""
    await answer.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 500)
    answer.hang_up()


async def half_chunked(_seen: Seen, answer: Answer) -> None:
    """Hangs up in the middle of a chunked body."""
    await answer.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nnot a hundred bytes")
    answer.hang_up()


async def half_gzip(_seen: Seen, answer: Answer) -> None:
    """A gzip body that ends too early, though its length is right."""
    await answer.send(gzip.compress(b"x" * 10_000)[:20], Content_Encoding="gzip")


async def longer(_seen: Seen, answer: Answer) -> None:
    """Sends more than it announced: the rest must not become the next answer."""
    smuggled = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled"
    await answer.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" + smuggled)


async def bad_length(_seen: Seen, answer: Answer) -> None:
    """A length that is no number."""
    await answer.raw(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nhello")
    answer.hang_up()


async def not_http(_seen: Seen, answer: Answer) -> None:
    """Speaks another language."""
    await answer.raw(b"220 mail.test ESMTP ready\r\n")
    answer.hang_up()


async def endless_redirects(seen: Seen, answer: Answer) -> None:
    """Always one further."""
    number = int(seen.path.partition("?")[2] or 0)
    await answer.send(b"", 302, Location=f"/endless?{number + 1}")


async def endless_hints(_seen: Seen, answer: Answer) -> None:
    """Early hints for ever, never the answer."""
    while True:
        await answer.raw(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 50)


async def bomb(_seen: Seen, answer: Answer) -> None:
    """A gigabyte of zeros in a megabyte of gzip."""
    await answer.raw(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n")
    packer = zlib.compressobj(9, wbits=31)
    for _ in range(GIGABYTE // len(_ZEROS)):
        await answer.raw(packer.compress(_ZEROS))
    await answer.raw(packer.flush())
    answer.hang_up()


async def nested_bomb(_seen: Seen, answer: Answer) -> None:
    """Gzip within gzip."""
    await answer.send(gzip.compress(gzip.compress(_ZEROS)), Content_Encoding="gzip, gzip")


async def bad_gzip(_seen: Seen, answer: Answer) -> None:
    """Says gzip and is not."""
    await answer.send(b"plain text after all", Content_Encoding="gzip")


async def gigabyte(_seen: Seen, answer: Answer) -> None:
    """A body of a gigabyte whose length is not announced."""
    await answer.raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    for _ in range(GIGABYTE // len(_ZEROS)):
        await answer.raw(_ZEROS)
    answer.hang_up()


async def gigabyte_announced(_seen: Seen, answer: Answer) -> None:
    """A body of a gigabyte that says so."""
    await answer.raw(f"HTTP/1.1 200 OK\r\nContent-Length: {GIGABYTE}\r\n\r\n".encode())
    for _ in range(GIGABYTE // len(_ZEROS)):
        await answer.raw(_ZEROS)


async def huge_header(_seen: Seen, answer: Answer) -> None:
    """One header of a megabyte."""
    await answer.raw(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * (1 << 20) + b"\r\nContent-Length: 0\r\n\r\n")


async def many_headers(_seen: Seen, answer: Answer) -> None:
    """Ten thousand headers."""
    lines = b"".join(b"X-%d: y\r\n" % i for i in range(10_000))
    await answer.raw(b"HTTP/1.1 200 OK\r\n" + lines + b"Content-Length: 0\r\n\r\n")


async def endless_headers(_seen: Seen, answer: Answer) -> None:
    """Headers that never end."""
    await answer.raw(b"HTTP/1.1 200 OK\r\n")
    for number in count():
        await answer.raw(b"".join(b"X-%d-%d: y\r\n" % (number, i) for i in range(100)))


async def odd_etag(_seen: Seen, answer: Answer) -> None:
    """Validators that are no text."""
    await answer.raw(
        b'HTTP/1.1 200 OK\r\nETag: "\xff\xfe"\r\nLast-Modified: \xc3\x28\r\nContent-Type: text/\xff\r\n'
        b"Content-Length: 2\r\n\r\nok"
    )


async def cookies(seen: Seen, answer: Answer) -> None:
    """Sets cookies and shows those that it got."""
    got = seen.headers.get("cookie", "none").encode()
    await answer.send(b"cookies: " + got, Set_Cookie="track=me; Path=/")


async def unasked_304(_seen: Seen, answer: Answer) -> None:
    """304 to everyone."""
    await answer.send(status=304)


class Clockwork:
    """Pages whose answers differ from one request to the next."""

    def __init__(self) -> None:
        self.ticks = 0

    async def clock(self, _seen: Seen, answer: Answer) -> None:
        """The same content but for a clock."""
        self.ticks += 1
        page = f"<main>the same</main><footer>served at {self.ticks}</footer>"
        await answer.send(page.encode(), Content_Type="text/html")

    async def noisy_etag(self, seen: Seen, answer: Answer) -> None:
        """The same content, another ETag every time; Last-Modified is honest."""
        self.ticks += 1
        date = "Thu, 01 Jan 1970 00:16:40 GMT"
        if "if-none-match" not in seen.headers and seen.headers.get("if-modified-since") == date:
            await answer.send(status=304)
        else:
            await answer.send(b"the same", ETag=f'"{self.ticks}"', Last_Modified=date)

    async def lying_etag(self, seen: Seen, answer: Answer) -> None:
        """Other content every time, always the same ETag, so 304 to those who ask with it."""
        self.ticks += 1
        if seen.headers.get("if-none-match") == '"always"':
            await answer.send(status=304, ETag='"always"')
        else:
            await answer.send(f"version {self.ticks}".encode(), ETag='"always"')


def hostile_routes() -> dict[str, Handler]:
    """All of it; robots.txt is an image."""
    work = Clockwork()
    return {
        "/robots.txt": page(b"\x89PNG\r\n\x1a\n\x00\x00Disallow: /", Content_Type="image/png"),
        "/stall": stall,
        "/stall-in-headers": stall_in_headers,
        "/stall-in-body": stall_in_body,
        "/drip": drip,
        "/drop": drop,
        "/half": half,
        "/half-chunked": half_chunked,
        "/half-gzip": half_gzip,
        "/longer": longer,
        "/bad-length": bad_length,
        "/not-http": not_http,
        "/circle": redirect("/circle-back"),
        "/circle-back": redirect("/circle"),
        "/endless": endless_redirects,
        "/endless-hints": endless_hints,
        "/to-file": redirect("file:///etc/passwd"),
        "/to-nowhere": redirect("http://[::bad/"),
        "/bomb": bomb,
        "/nested-bomb": nested_bomb,
        "/bad-gzip": bad_gzip,
        "/gigabyte": gigabyte,
        "/gigabyte-announced": gigabyte_announced,
        "/huge-header": huge_header,
        "/many-headers": many_headers,
        "/endless-headers": endless_headers,
        "/odd-etag": odd_etag,
        "/cookies": cookies,
        "/unasked-304": unasked_304,
        "/charset": page(b"caf\xe9 \xff\xfe\x00", Content_Type="text/html; charset=x-klingon"),
        "/future": page(b"from the future", Last_Modified="Fri, 01 Jan 2100 00:00:00 GMT"),
        "/captcha": page(b"<title>Just a moment...</title>"),
        "/login-wall": redirect("/login?next=/login-wall"),
        "/login": page(b"<title>Welcome</title><form>"),
        "/clock": work.clock,
        "/noisy-etag": work.noisy_etag,
        "/lying-etag": work.lying_etag,
        "/laughs.xml": page(_LAUGHS, Content_Type="application/xml"),
        "/fine": page(b"<p>all is well</p>", ETag='"fine"'),
    }

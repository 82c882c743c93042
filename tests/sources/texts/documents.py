"""Documents whose texts are known: an article with menus around it, and small PDF files."""

from __future__ import annotations

_ARTICLE = """<!doctype html><html><head><title>Flood</title></head><body>
<nav><a href="/">Home</a> <a href="/news">News</a></nav>
<aside>Subscribe to our newsletter</aside>
<main><article><h1>Flood</h1><p>{text}</p>
<ul><li>first point</li><li>second point</li></ul>
<p>More is in <a href="https://a.test/report">the report</a> of the water board, which appeared today.</p>
</article></main>
<footer>It is {clock}. Visitors: {clock}</footer></body></html>"""


def article(text: str, clock: str = "08:00:00") -> bytes:
    """A page with a main text, a menu, and a clock in its footer."""
    return _ARTICLE.format(text=text, clock=clock).encode()


def pdf(*texts: str) -> bytes:
    """A PDF file with one page for each text."""
    pages = " ".join(f"{4 + 2 * place} 0 R" for place in range(len(texts)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{pages}] /Count {len(texts)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for place, text in enumerate(texts):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * place)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    return _file_of(objects)


def _file_of(objects: list[bytes]) -> bytes:
    body, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    head = b"xref\n0 %d\n0000000000 65535 f \n" % count
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (count, len(body))
    return body + head + table + trailer

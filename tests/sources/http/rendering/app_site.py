"""A site whose pages are made by scripts: a shop, a list that grows, and a page for members."""

from __future__ import annotations

import json

from tests.servers.site import Answer, Handler, Seen, Site, page

_SHOP = b"""<!doctype html><html><head><title>Shop</title></head><body><div id=app></div>
<img src="/picture.png"><script>
fetch("/price.json").then(r => r.json()).then(price => {
  document.getElementById("app").innerHTML = "<h1>Tea</h1><p id=price>costs " + price.eur + " EUR today</p>";
});
</script></body></html>"""
_LIST = b"""<!doctype html><html><head><title>List</title></head><body><ul id=rows></ul><script>
let shown = 0;
function more() {
  if (shown >= 60) return;
  for (let i = 0; i < 20; i++) {
    const row = document.createElement("li");
    row.style.height = "150px";
    row.textContent = "row number " + ++shown;
    document.getElementById("rows").append(row);
  }
}
more();
window.addEventListener("scroll", () => {
  if (innerHeight + scrollY >= document.documentElement.scrollHeight - 10) more();
});
</script></body></html>"""
_MEMBERS = b"""<!doctype html><html><head><title>Members</title></head><body><p id=news></p><script>
fetch("/news.json").then(r => {
  if (r.status != 200) location.href = "/login?back=members";
  else r.json().then(news => { document.getElementById("news").textContent = news.text; });
});
</script></body></html>"""
_LEAK = b"""<!doctype html><html><body><p id=found>nothing</p><script>
fetch("%s").then(r => r.text()).then(t => { document.getElementById("found").textContent = t; });
</script></body></html>"""
STATIC = (
    b"<!doctype html><html><head><title>Plain</title></head><body><p>all is in the page</p></body></html>"
)


class AppSite(Site):
    """``price`` may be changed; ``/leak`` asks for the address ``leak``."""

    def __init__(self) -> None:
        super().__init__()
        self.price, self.leak = 3, ""
        self.routes |= {
            "/robots.txt": page(b"User-agent: *\nDisallow: /login\n"),
            "/shop": page(_SHOP, ETag='"always"'),
            "/price.json": self._price,
            "/picture.png": page(b"\x89PNG", Content_Type="image/png"),
            "/list": page(_LIST),
            "/members": page(_MEMBERS),
            "/news.json": _news,
            "/leak": self._leak,
            "/file.txt": page(b"only words", Content_Type="text/plain"),
            "/moved": _redirect("/shop"),
            "/endless": page(
                _SHOP.replace(b"</script>", b"setInterval(() => fetch('/price.json'), 50);</script>")
            ),
        }
        for number in range(8):
            self.routes[f"/static/{number}"] = page(STATIC)
            self.routes[f"/app/{number}"] = page(_SHOP)

    def paths(self) -> list[str]:
        return [seen.path for seen in self.seen if seen.path != "/robots.txt"]

    async def _price(self, _seen: Seen, answer: Answer) -> None:
        await answer.send(json.dumps({"eur": self.price}).encode(), Content_Type="application/json")

    async def _leak(self, _seen: Seen, answer: Answer) -> None:
        await answer.send(_LEAK % self.leak.encode(), Content_Type="text/html")


async def _news(seen: Seen, answer: Answer) -> None:
    if "session=member" not in {name.lower(): value for name, value in seen.headers.items()}.get(
        "cookie", ""
    ):
        await answer.send(b"", 403)
    else:
        await answer.send(b'{"text": "news for members"}', Content_Type="application/json")


def _redirect(target: str) -> Handler:
    async def handler(_seen: Seen, answer: Answer) -> None:
        await answer.send(b"", 302, Location=target)

    return handler

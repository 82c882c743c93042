// The page of changes: new ones come by themselves, and differences are fetched when they are opened.
"use strict";
(() => {
  const changes = document.getElementById("changes");
  const newer = document.getElementById("newer");
  const most = 200; // changes on the page; older ones leave it when new ones come

  const load = async (details) => {
    const place = details.querySelector(".found");
    if (!place || place.dataset.state) return;
    place.dataset.state = "loading";
    const answer = await fetch(details.dataset.diff, { headers: { "Accept": "text/html" } }).catch(() => null);
    const page = new DOMParser().parseFromString(answer ? await answer.text() : "", "text/html");
    const diff = page.getElementById("diff");
    if (diff) {
      diff.removeAttribute("id");
      place.prepend(diff);
      return;
    }
    delete place.dataset.state; // it is tried again when it is opened again
    const reason = page.querySelector("[data-problem]");
    let words = place.querySelector("[role=alert]");
    if (!words) {
      words = document.createElement("p");
      words.setAttribute("role", "alert");
      words.className = "bad";
      place.prepend(words);
    }
    words.textContent = reason ? reason.textContent : "The server does not answer.";
  };
  // The event does not bubble, but it can be caught on its way down.
  changes.addEventListener("toggle", (event) => {
    if (event.target.open && event.target.dataset.diff) load(event.target);
  }, true);

  const fetchNew = async (mark) => {
    const answer = await fetch(location.href, { headers: { "Accept": "text/html" } }).catch(() => null);
    if (!answer || !answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.getElementById("changes");
    const list = changes.querySelector("ol");
    changes.dataset.mark = mark;
    if (!list) { changes.replaceChildren(...found.childNodes); return; }
    const known = new Set([...list.children].map((row) => row.dataset.cursor));
    const all = [...found.querySelectorAll("li")];
    const rows = all.filter((row) => !known.has(row.dataset.cursor));
    if (rows.length === all.length) list.replaceChildren(); // there may be others between them and those here
    list.prepend(...rows);
    while (list.children.length > most) list.lastElementChild.remove();
  };

  let busy = false;
  document.addEventListener("now", async (event) => {
    const mark = event.detail.fields["last-change"];
    if (busy || mark === undefined || mark === changes.dataset.mark) return;
    if (changes.dataset.live === undefined) {
      newer.querySelector("span").textContent = "There are newer changes.";
      return;
    }
    busy = true;
    await fetchNew(mark);
    busy = false;
  });
})();

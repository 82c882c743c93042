// Actions that change something. They need the token, which is asked for once and kept in this tab.
"use strict";
(() => {
  const dialog = document.getElementById("token-dialog");
  const input = document.getElementById("token-input");
  const toast = document.getElementById("toast");
  let hiding = null;

  const say = (words, bad = false) => {
    toast.textContent = words;
    toast.classList.toggle("bad", bad);
    clearTimeout(hiding);
    hiding = setTimeout(() => { toast.textContent = ""; }, Math.max(6000, 80 * words.length));  // time to read it
  };

  const askToken = (problem) => new Promise((resolve) => {
    document.getElementById("token-problem").textContent = problem;
    input.value = "";
    dialog.returnValue = "";
    dialog.showModal();
    input.focus();
    const form = dialog.querySelector("form");
    const done = (token) => {
      form.removeEventListener("submit", submitted);
      dialog.removeEventListener("close", closed);
      if (dialog.open) dialog.close();
      resolve(token);
    };
    const submitted = (event) => { event.preventDefault(); done(input.value.trim()); };
    const closed = () => done(null);
    form.addEventListener("submit", submitted);
    dialog.addEventListener("close", closed);
  });
  document.getElementById("token-cancel").addEventListener("click", () => dialog.close());

  const send = async (method, address, body) => {
    if (document.body.dataset.writable !== "yes") throw new Error("Read only: the project has no token ('afresh init' makes one).");
    let problem = "";
    for (;;) {
      let token = sessionStorage.getItem("afresh.token");
      if (!token) {
        token = await askToken(problem);
        if (!token) return null;
      }
      const headers = { "Authorization": `Bearer ${token}`, "Content-Type": "application/json" };
      const answer = await fetch(address, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
      const found = await answer.json().catch(() => ({}));
      if (answer.ok) { sessionStorage.setItem("afresh.token", token); return found; }
      const words = found.error ? found.error.message : `the server answered ${answer.status}`;
      if (answer.status !== 401) throw new Error(words);
      sessionStorage.removeItem("afresh.token");
      problem = `${words[0].toUpperCase()}${words.slice(1)}.`;
    }
  };

  const item = (form, more = "") => `/api/v1/item${more}?${new URLSearchParams({ key: form.dataset.key, source: form.dataset.source })}`;
  const actions = {
    pause: (form) => send("PATCH", item(form), { status: "paused" }),
    resume: (form) => send("PATCH", item(form), { status: "active" }),
    weight: (form) => send("PATCH", item(form), { weight: Number(form.elements.weight.value) }),
    poll: (form) => send("POST", item(form, "/poll")),
    budget: (form) => send("PUT", "/api/v1/budget", { requests: form.dataset.requests }),
  };
  const words = {
    pause: () => "Paused",
    resume: () => "Active again",
    weight: (found) => `The weight is now ${found.weight}`,
    poll: () => "It is polled as soon as its host and the budget allow",
    budget: () => "The budget is set; engines follow within seconds",
  };

  // Scripts of single pages add actions of their own.
  window.Actions = { actions, words, send, say };

  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("form[data-action]");
    if (!form) return;
    event.preventDefault();
    const action = form.dataset.action;
    const outer = form.closest("dialog");
    if (outer && document.body.dataset.writable === "yes") outer.close();
    try {
      const found = await actions[action](form);
      if (found === null) return;
      sessionStorage.setItem("afresh.said", words[action](found));
      location.reload();
    } catch (error) {
      if (outer && outer.open) outer.close();
      say(error.message, true);
    }
  });

  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-open]");
    if (opener) document.getElementById(opener.dataset.open).showModal();
    const closer = event.target.closest("[data-close]");
    if (closer) closer.closest("dialog").close();
  });

  const said = sessionStorage.getItem("afresh.said");
  if (said) { sessionStorage.removeItem("afresh.said"); say(said); }
})();

// Live updates: every element with data-field shows the text of the last event. The page reconnects by itself.
"use strict";
(() => {
  const pill = document.getElementById("state");
  const banner = document.getElementById("banner");
  const silence = 8000; // milliseconds; the server sends something every few seconds
  let source = null;
  let heard = Date.now();

  const show = (fields) => {
    for (const element of document.querySelectorAll("[data-field]")) {
      let text = fields[element.dataset.field];
      if (text === undefined) continue;
      if (element.dataset.field === "state-words" && element.parentElement === banner) text += ".";
      if (element.textContent !== text) element.textContent = text;
    }
    pill.dataset.state = fields.state;
    banner.hidden = fields.state === "running";
  };

  const lost = (words, detail) => {
    show({ "state": "offline", "state-words": words, "state-detail": detail });
  };

  const connect = () => {
    if (source) source.close();
    source = new EventSource(document.querySelector("[data-live-charts]") ? "/live?charts=true" : "/live");
    source.addEventListener("now", (event) => {
      heard = Date.now();
      const message = JSON.parse(event.data);
      if (message.fields.state !== "no store" && document.querySelector("[data-recovers]")) location.reload();
      show(message.fields);
      document.dispatchEvent(new CustomEvent("now", { detail: message }));
    });
    source.addEventListener("here", () => { heard = Date.now(); });
    source.addEventListener("problem", (event) => {
      heard = Date.now();
      lost("Store lost", JSON.parse(event.data).message);
    });
    source.addEventListener("error", () => {
      lost("No connection", "The dashboard's server does not answer. This page comes back by itself.");
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
    });
  };

  connect();
  setInterval(() => {
    if (Date.now() - heard < silence) return;
    heard = Date.now();
    lost("Nothing heard", "The dashboard's server is silent: it has stopped, or is very busy. The numbers are old; this page comes back by itself.");
    connect();
  }, 1000);
  addEventListener("pagehide", () => source && source.close());
  addEventListener("pageshow", (event) => { if (event.persisted) connect(); });

  // Update times that were rendered as "10 s ago".
  const units = [["year", 31557600], ["week", 604800], ["day", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const span = (seconds) => {
    const [unit, size] = units.find(([, size]) => seconds >= size) || units[units.length - 1];
    const value = Number((seconds / size).toPrecision(3));
    return `${value} ${size >= 86400 && value !== 1 ? `${unit}s` : unit}`;
  };
  setInterval(() => {
    for (const element of document.querySelectorAll("time[datetime]")) {
      const then = Date.parse(element.dateTime);
      if (Number.isNaN(then)) continue;
      const away = Math.round((then - Date.now()) / 1000);
      const before = element.dataset.due; // the word before a future time, for times at which something is due
      const now = before === undefined ? "now" : "due now";
      const past = before === undefined ? `${span(-away)} ago` : `due for ${span(-away)}`;
      const ahead = `${before || ""} in ${span(away)}`.trim();
      element.textContent = Math.abs(away) < 1 ? now : away > 0 ? ahead : past;
    }
  }, 1000);
})();

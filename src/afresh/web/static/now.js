// The charts of the Now page. They are drawn again when an event brings new series.
"use strict";
(() => {
  let data = Charts.data();

  // The points of the course, divided where no engine ran: there the rates have no value.
  const stretches = () => {
    const parts = [];
    for (let i = 0; i < (data.course.time_s || []).length; i++) {
      if (i === 0 || data.rates.polls[i - 1] === null) parts.push([]);
      parts.at(-1).push(i);
    }
    return parts;
  };

  const freshness = (colours) => {
    const course = data.course;
    const time = Charts.when(course.time_s || []);
    const parts = stretches();
    const line = (values) => parts.flatMap((part) => [...part.map((i) => values[i]), null]);
    const around = (there, back) => parts.flatMap((part) => [...part.map((i) => there[i]), ...[...part].reverse().map((i) => back[i]), null]);
    const audits = data.audits;
    const traces = [
      { x: around(time, time), y: around(course.high, course.low), mode: "lines", line: { width: 0 }, fill: "toself", fillcolor: colours.band, hoverinfo: "skip", showlegend: false },
      { x: line(time), y: line(course.freshness), mode: "lines", name: "model", line: { color: colours.blue, width: 2 }, hovertemplate: "%{y:.1%} at %{x|%H:%M:%S}<extra>model</extra>" },
      {
        x: Charts.when(audits.time_s), y: audits.value, mode: "markers", name: "audited", customdata: audits.n, cliponaxis: false,
        marker: { color: colours.orange, size: 8, line: { color: colours.card, width: 1.5 } },
        error_y: { type: "data", symmetric: false, array: audits.high.map((high, i) => high - audits.value[i]), arrayminus: audits.low.map((low, i) => audits.value[i] - low), color: colours.orange, thickness: 1, width: 3 },
        hovertemplate: "%{y:.1%} of %{customdata} random polls<extra>audited</extra>",
      },
    ];
    const values = [...(course.low || []), ...audits.low].filter((value) => value !== null);
    const least = values.length ? Math.max(0, Math.min(...values) - 0.04) : 0;
    const shapes = data.target === null ? [] : [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: data.target, y1: data.target, line: { color: colours.grey, dash: "dash", width: 1.5 } }];
    return { traces, shapes, yaxis: { tickformat: ".0%", range: [least, 1.005] }, xaxis: { type: "date", title: "UTC" } };
  };

  const rates = (colours) => {
    const time = Charts.when(data.rates.time_s);
    const line = (name, y, color) => ({ x: time, y, name, mode: "lines", line: { color, width: 2 }, hovertemplate: `%{y:.3g} per minute<extra>${name}</extra>` });
    return { traces: [line("polls", data.rates.polls, colours.blue), line("changes", data.rates.changes, colours.green)], yaxis: { rangemode: "tozero" }, xaxis: { type: "date", title: "UTC" } };
  };

  const budget = (colours) => {
    const most = data.budget_per_minute;
    const traces = [{ x: Charts.when(data.minutes.time_s), y: data.minutes.used, type: "bar", name: data.budget_unit, width: 46000, xperiodalignment: "middle", marker: { color: colours.blue }, hovertemplate: `%{y:.3~g} ${data.budget_unit} in the minute from %{x|%H:%M}<extra></extra>` }];
    const shapes = [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: most, y1: most, line: { color: colours.orange, width: 1.5, dash: "dash" } }];
    const annotations = [{ xref: "paper", x: 1, y: most, xanchor: "right", yanchor: "bottom", text: "budget", showarrow: false, font: { color: colours.orange, size: 11 } }];
    const end = data.time_s;
    const span = Math.max(600, Math.min(3600, end - (data.minutes.time_s[0] ?? end) + 60));
    return { traces, shapes, annotations, bargap: 0.2, showlegend: false, yaxis: { range: [0, 1.18 * Math.max(most, ...data.minutes.used)] }, xaxis: { type: "date", title: "UTC", range: Charts.when([end - span, end + 30]) } };
  };

  const draw = () => {
    document.getElementById("no-course").hidden = (data.course.time_s || []).length > 0 || data.audits.time_s.length > 0;
    Charts.draw("freshness-chart", freshness);
    Charts.draw("rates-chart", rates);
    Charts.draw("budget-chart", budget);
  };

  draw();
  // The tables of failing hosts and items, and of views, are fetched again when their hash changes.
  document.addEventListener("now", async (event) => {
    const fields = event.detail.fields;
    const old = ["trouble", "item-views"].filter((id) => document.getElementById(id).dataset.mark !== fields[id]);
    if (!old.length) return;
    for (const id of old) document.getElementById(id).dataset.mark = fields[id];
    const answer = await fetch("/").catch(() => null);
    if (!answer || !answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const id of old) {
      const found = page.getElementById(id);
      if (found) document.getElementById(id).replaceWith(found);
    }
  });
  // The series come from the same snapshot as the texts, when the course has a new point.
  document.addEventListener("now", (event) => {
    if (event.detail.series) { data = event.detail.series; draw(); }
  });
})();

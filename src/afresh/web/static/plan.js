// The Plan page: budgets under a slider, and the curve of frequencies with the items of this store.
"use strict";
(() => {
  const holder = document.getElementById("data");
  if (!holder) return;
  const data = Charts.data();
  const slider = document.getElementById("slider");
  const form = document.getElementById("budget-form");
  const middle = Number(slider.value);
  const per = (value, place) => { const element = document.getElementById(place); if (element) element.textContent = value; };
  let chosen = middle;
  let waiting = null;

  const [unit, size] = (() => {
    const now = data.today.requests_per_s;
    for (const [name, seconds] of [["s", 1], ["m", 60], ["h", 3600], ["d", 86400]]) if (now * seconds >= 1) return [name, seconds];
    return ["day", 86400];
  })();

  const budgets = (colours) => {
    const x = data.budgets.map((point) => point.requests_per_s * size);
    const y = data.budgets.map((point) => point.freshness);
    const dot = (place, name, color, symbol) => ({ x: [x[place]], y: [y[place]], name, mode: "markers", marker: { color, size: 12, symbol, line: { color: colours.card, width: 2 } }, hovertemplate: `%{y:.1%} at %{x:.3g}/${unit}<extra>${name}</extra>` });
    return {
      traces: [
        { x, y: data.budgets.map((point) => point.freshness_low), mode: "lines", showlegend: false, line: { width: 0 }, hoverinfo: "skip" },
        { x, y: data.budgets.map((point) => point.freshness_high), mode: "lines", showlegend: false, line: { width: 0 }, fill: "tonexty", fillcolor: colours.band, hoverinfo: "skip" },
        { x, y, mode: "lines", showlegend: false, line: { color: colours.blue, width: 2.5 }, hovertemplate: `%{y:.1%} at %{x:.3g}/${unit}<extra></extra>` },
        dot(middle, "today", colours.grey, "circle"), dot(chosen, "chosen", colours.orange, "diamond"),
      ],
      xaxis: { type: "log", title: `requests/${unit}`, dtick: 1 }, yaxis: { tickformat: ".0%", range: [0, 1.03] },
    };
  };

  const moves = async (budget) => {
    const answer = await fetch(`/api/v1/plan/at?budget=${encodeURIComponent(`${budget}/s`)}&objective=${data.objective}`).catch(() => null);
    const place = document.getElementById("moves");
    if (!answer || !answer.ok) { place.replaceChildren(paragraph("The server does not answer.")); return; }
    const found = await answer.json();
    const parts = [];
    if (found.back) parts.push(paragraph(`${items(found.back)} would be polled again${found.back_named.length < found.back ? ", such as" : ":"}`), list(found.back_named));
    if (found.gone) parts.push(paragraph(`${items(found.gone)} would be given up${found.gone_named.length < found.gone ? ", such as" : ":"}`), list(found.gone_named));
    if (!parts.length) parts.push(paragraph("The same items would be polled, only more or less often."));
    place.replaceChildren(...parts);
  };
  const items = (number) => `${Words.count(number)} ${number === 1 ? "item" : "items"}`;
  const paragraph = (text) => { const element = document.createElement("p"); element.textContent = text; return element; };
  const list = (names) => {
    const element = document.createElement("ul");
    for (const name of names) { const line = document.createElement("li"); line.textContent = name; element.append(line); }
    return element;
  };

  const choose = () => {
    chosen = Number(slider.value);
    const point = data.budgets[chosen];
    const words = Words.rate(point.requests_per_s);
    per(words, "slider-budget");
    const between = `${Math.round(100 * point.freshness_low)} … ${Math.round(100 * point.freshness_high)} %`;
    slider.setAttribute("aria-valuetext", `${words}, freshness ${Words.share(point.freshness)}, between ${between}`);
    per(between, "then-between");
    per(words, "then-budget");
    per(Words.share(point.freshness), "then-freshness");
    per(point.age_s === null ? "unbounded" : Words.duration(point.age_s), "then-age");
    per(Words.count(point.dropped), "then-dropped");
    per(point.uniform_needs === null ? "–" : `${point.uniform_needs.toFixed(2)}×`, "then-uniform");
    per(Words.number(point.money_per_day), "then-money");
    const gained = 100 * (point.freshness - data.today.freshness);
    const paid = point.money_per_day - data.today.money_per_day;
    per(Math.abs(gained) > 0.005 ? `${Words.number(paid / gained)} per day` : "–", "then-point");
    if (data.earns) {
      const more = point.income_per_day - data.today.income_per_day;
      per(Words.number(point.income_per_day), "then-income");
      per(`${more > 0 ? "+" : ""}${Words.number(more)}`, "then-worth");
    }
    const most = data.absorbed_per_s;
    per(most !== null && point.requests_per_s > most * 1.001 ? `All hosts together take ${Words.rate(most)} at most, because of their delays and caps. The rest of the budget stays unspent.` : "", "then-absorbed");
    form.dataset.requests = `${Number(point.requests_per_s.toPrecision(6))}/s`;
    form.querySelector("button").disabled = chosen === middle;
    Charts.draw("budget-chart", budgets);
    clearTimeout(waiting);
    if (chosen !== middle) waiting = setTimeout(() => moves(point.requests_per_s), 200);
  };

  const cho = (colours) => {
    const [name, seconds] = (() => {
      const rates = [...data.dot_rate].sort((one, other) => one - other);
      const typical = rates[Math.floor(rates.length / 2)] || 1e-5;
      for (const pair of [["s", 1], ["min", 60], ["h", 3600], ["day", 86400]]) if (typical * pair[1] >= 0.3) return pair;
      return ["day", 86400];
    })();
    const scaled = (values) => values.map((value) => (value === null ? null : value * seconds));
    // The axis holds the curve and nearly all points; a note at the edge counts those far above.
    const dots = scaled(data.dot_frequency).map((value) => value || 0).sort((one, other) => one - other);
    const most = dots.at(-1) || 0;
    const nearly = dots[Math.floor(0.99 * (dots.length - 1))] || 0;
    const curve = Math.max(...scaled(data.curve_frequency).filter((value) => value !== null), 1e-12);
    const highest = Math.max(1.4 * curve, most <= 3 * Math.max(nearly, curve) ? most : nearly);
    const above = dots.filter((value) => value > highest).length;
    const annotations = above ? [{ xref: "paper", yref: "paper", x: 1, y: 1, xanchor: "right", yanchor: "top", showarrow: false, font: { color: colours.orange, size: 11 }, text: `↑ ${items(above)} above, up to ${Words.number(most)}/${name}` }] : [];
    return {
      traces: [
        { x: scaled(data.dot_rate), y: scaled(data.dot_frequency), text: data.dot_key, mode: "markers", name: "your items", marker: { color: colours.orange, size: 6, opacity: 0.65 }, hovertemplate: `%{text}<br>changes %{x:.3g}/${name}, polled %{y:.3g}/${name}<extra></extra>` },
        { x: scaled(data.curve_rate), y: scaled(data.curve_frequency), mode: "lines", name: "optimal", line: { color: colours.blue, width: 2.5 }, hovertemplate: `changes %{x:.3g}/${name}: poll %{y:.3g}/${name}<extra>optimal</extra>` },
      ],
      xaxis: { type: "log", title: `changes/${name}`, dtick: 1 }, yaxis: { title: `polls/${name}`, range: [-0.03 * highest, 1.06 * highest] }, annotations,
    };
  };

  slider.addEventListener("input", choose);
  document.getElementById("objective").addEventListener("change", (event) => event.target.form.submit());
  choose();
  Charts.draw("cho-chart", cho);
})();

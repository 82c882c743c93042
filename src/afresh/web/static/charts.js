// What all charts have in common. They use the colours of the theme and are drawn again when it changes.
"use strict";
const Charts = (() => {
  const drawn = new Map();
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const palette = () => {
    const dark = document.documentElement.dataset.theme === "dark";
    return {
      ink: colour("--ink"), soft: colour("--soft"), line: colour("--line"), card: colour("--card"),
      blue: dark ? "#6cbcf0" : "#0072b2", band: dark ? "rgba(108,188,240,.20)" : "rgba(0,114,178,.15)",
      orange: dark ? "#f0a05a" : "#d55e00", green: dark ? "#55cfa6" : "#00865f", grey: dark ? "#7c8894" : "#8c959f",
    };
  };
  const layout = (colours, more, width) => {
    const axis = (given) => ({
      gridcolor: colours.line, linecolor: colours.line, zeroline: false, ticks: "", automargin: true,
      tickfont: { color: colours.soft }, ...given,
      title: { text: (given && given.title) || "", font: { color: colours.soft, size: 12 }, standoff: 8 },
    });
    const { xaxis, yaxis, ...rest } = more;
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 52, r: 14, t: 8, b: 40 },
      font: { family: "system-ui, -apple-system, Segoe UI, Roboto, DejaVu Sans, sans-serif", size: 12, color: colours.ink },
      hoverlabel: { bgcolor: colours.card, bordercolor: colours.line, font: { color: colours.ink } },
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { color: colours.soft, size: 11 }, entrywidthmode: "pixels" },
      hovermode: "closest", uirevision: "keep", ...rest, yaxis: axis(yaxis),
      xaxis: axis({ tickangle: 0, nticks: Math.max(3, Math.round(width / 110)), ...xaxis }),
    };
  };
  const draw = (id, make) => {
    const element = document.getElementById(id);
    if (!element) return;
    drawn.set(id, make);
    const colours = palette();
    const { traces, ...rest } = make(colours);
    Plotly.react(element, traces, layout(colours, rest, element.clientWidth), { displayModeBar: false, responsive: true });
  };
  document.addEventListener("theme", () => { for (const [id, make] of drawn) draw(id, make); });
  const data = () => JSON.parse(document.getElementById("data").textContent);
  // Times are UTC throughout, as in the texts.
  const when = (seconds) => seconds.map((each) => new Date(each * 1000).toISOString().slice(0, 19));
  return { draw, data, when };
})();

const Words = (() => {
  const units = [["s", 1], ["min", 60], ["h", 3600], ["day", 86400], ["week", 604800], ["year", 31557600]];

  const number = (value, figures = 3) => {
    if (value === null || value === undefined) return "∞";
    return Number(value.toPrecision(figures)).toLocaleString("en", { maximumSignificantDigits: figures });
  };
  const rate = (perS) => {
    if (perS === 0) return "0";
    const [unit, size] = units.find(([, size]) => perS * size >= 1) || units[units.length - 1];
    return `${number(perS * size)}/${unit}`;
  };
  const duration = (seconds) => {
    if (seconds === null) return "never ends";
    const [unit, size] = [...units].reverse().find(([, size]) => seconds >= size) || units[0];
    return `${number(seconds / size)} ${size >= 86400 && number(seconds / size) !== "1" ? `${unit}s` : unit}`;
  };
  const share = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)} %`);
  const count = (value) => value.toLocaleString("en");
  // The unit of time in which a duration is easy to read.
  const unitFor = (secondsEach) => [...units].reverse().find(([, size]) => secondsEach >= size) || units[0];
  return { number, rate, duration, share, count, unitFor };
})();

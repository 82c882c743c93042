// The charts of an item's page.
"use strict";
(() => {
  const { curves, polls } = Charts.data();
  const drawCurves = () => {
    const [unit, size] = Words.unitFor(curves.time_s.at(-1) / 3);
    const time = curves.time_s.map((each) => each / size);
    const mark = (at, color, words) => (at === null || at / size > time.at(-1) ? [] : [{ at: at / size, color, words }]);
    const lines = (marks) => ({
      shapes: marks.map(({ at, color }) => ({ type: "line", yref: "paper", y0: 0, y1: 1, x0: at, x1: at, line: { color, width: 1.5, dash: "dot" } })),
      annotations: marks.map(({ at, color, words }) => ({ x: at, yref: "paper", y: 1, xanchor: "left", yanchor: "top", text: ` ${words}`, showarrow: false, font: { color, size: 11 } })),
    });
    const xaxis = { title: `since the last poll, ${unit}`, rangemode: "tozero" };

    Charts.draw("fresh-chart", (colours) => ({
      traces: [{ x: time, y: curves.fresh, mode: "lines", line: { color: colours.blue, width: 2 }, fill: "tozeroy", fillcolor: colours.band, hovertemplate: `%{y:.1%} after %{x:.3g} ${unit}<extra></extra>` }],
      ...lines(mark(curves.now_s, colours.orange, "now")), showlegend: false, xaxis, yaxis: { tickformat: ".0%", range: [0, 1.03] },
    }));

    Charts.draw("worth-chart", (colours) => {
      const found = lines([...mark(curves.now_s, colours.orange, "now")]);
      if (curves.threshold) found.shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: curves.threshold, y1: curves.threshold, line: { color: colours.grey, width: 1.5, dash: "dash" } });
      return {
        traces: [{ x: time, y: curves.worth, mode: "lines", line: { color: colours.green, width: 2 }, hovertemplate: `%{y:.3g} after %{x:.3g} ${unit}<extra></extra>` }],
        ...found, showlegend: false, xaxis, yaxis: { rangemode: "tozero" },
      };
    });
  };
  if (curves) drawCurves();

  const padded = () => {
    const [first, last] = [polls.time_s[0], polls.time_s.at(-1)];
    const room = Math.max(30, 0.03 * (last - first));
    return [first - room, last + room];
  };

  if (polls.time_s.length) Charts.draw("polls-chart", (colours) => {
    const when = Charts.when(polls.time_s);
    const pick = (test) => when.filter((_, place) => test(place));
    const dots = (name, test, color, symbol) => ({ x: pick(test), y: pick(test).map(() => 0), name, mode: "markers", marker: { color, size: 10, symbol, line: { color, width: 1.5 } }, hovertemplate: `%{x|%Y-%m-%d %H:%M:%S}<extra>${name}</extra>` });
    return {
      traces: [
        dots("changed", (place) => polls.changed[place], colours.orange, "circle"),
        dots("unchanged", (place) => !polls.changed[place] && !polls.audit[place], colours.blue, "circle-open"),
        dots("audit", (place) => !polls.changed[place] && polls.audit[place], colours.green, "diamond-open"),
      ],
      yaxis: { visible: false, range: [-1, 1] }, xaxis: { type: "date", title: "UTC", range: Charts.when(padded()) },
    };
  });
})();

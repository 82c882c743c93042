// The dialog that adds items: addresses, sitemaps, feeds or whole sites, and what they would add.
"use strict";
(() => {
  const form = document.querySelector("form[data-action=add]");
  const { keys, kind, source, weight } = form.elements;
  const preview = document.getElementById("add-preview");
  const show = document.getElementById("add-show");
  const most = { keys: 10000, others: 20 };
  const counted = (number, thing) => `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;

  const wanted = () => {
    const given = keys.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const limit = most[kind.value] || most.others;
    if (given.length > limit) throw new Error(`These are ${counted(given.length, "address").replace(/s$/, "es")}: at most ${limit.toLocaleString("en")} at once. 'afresh add' takes any number.`);
    const body = { [kind.value]: given, weight: Number(weight.value) };
    if (source) body.source = source.value;
    return body;
  };

  const element = (name, text, kindOf = "") => {
    const made = document.createElement(name);
    made.textContent = text;
    if (kindOf) made.className = kindOf;
    return made;
  };

  const list = (lines, kindOf, label) => {
    const made = element("ul", "", kindOf);
    made.tabIndex = 0;
    made.setAttribute("role", "list");
    made.setAttribute("aria-label", label);
    made.append(...lines.map((line) => element("li", line)));
    return made;
  };

  const draw = (found) => {
    const hidden = found.new - found.shown.length;
    const parts = [element("p", `${counted(found.new, "item")} would be added${found.known ? `, ${found.known.toLocaleString("en")} known already` : ""}${found.more ? "; these pages may show more" : ""}.`)];
    if (found.shown.length) parts.push(list([...found.shown, ...(hidden ? [`… and ${hidden.toLocaleString("en")} more`] : [])], "found", "What would be added"));
    const problems = Object.entries(found.problems).map(([address, problem]) => `${address}: ${problem}`);
    if (problems.length) parts.push(list(problems, "bad", "Problems"));
    const left = found.left_out.map((one) => `${counted(one.links, "link")} left out: ${one.reason}, such as ${one.example}`);
    if (left.length) parts.push(list(left, "soft", "Links that would be left out"));
    preview.replaceChildren(...parts);
  };

  const adapt = () => {
    document.getElementById("add-hint").textContent = kind.selectedOptions[0].dataset.hint;
    document.getElementById("add-weight-row").hidden = kind.value !== "keys";
    preview.replaceChildren();
  };
  kind.addEventListener("change", adapt);
  keys.addEventListener("input", () => preview.replaceChildren());

  show.addEventListener("click", async () => {
    if (!form.reportValidity()) return;
    show.disabled = true;
    try {
      const body = wanted();
      preview.replaceChildren(element("p", "Reading: this takes a minute at most.", "soft"));
      const found = await Actions.send("POST", "/api/v1/items/preview", body);
      if (found === null) preview.replaceChildren();
      else draw(found);
    } catch (error) {
      preview.replaceChildren(element("p", error.message, "bad"));
    } finally {
      show.disabled = false;
    }
  });

  Actions.actions.add = () => {
    const body = wanted();
    if (kind.value !== "keys") Actions.say("Reading: this takes a minute at most.");
    return Actions.send("POST", "/api/v1/items", body);
  };
  Actions.words.add = (found) => {
    const problems = Object.entries(found.problems).map(([address, problem]) => `; ${address}: ${problem}`);
    return `${found.new.toLocaleString("en")} new${problems.slice(0, 3).join("")}${problems.length > 3 ? `; ${problems.length - 3} more problems` : ""}`;
  };
  adapt();
})();

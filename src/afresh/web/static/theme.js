// Light or dark colours, or those of the system. It runs before anything is drawn, so that nothing flashes.
"use strict";
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const words = { auto: ["Auto", "those of the system"], light: ["Light", "light"], dark: ["Dark", "dark"] };
  const kept = () => { try { return localStorage.getItem("afresh.theme") || "auto"; } catch { return "auto"; } };
  let choice = kept() in words ? kept() : "auto";
  const apply = () => {
    const dark = choice === "dark" || (choice === "auto" && system.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    const button = document.getElementById("theme");
    if (button) {
      button.textContent = words[choice][0];
      button.setAttribute("aria-label", `Colours: ${words[choice][1]}`);
    }
    document.dispatchEvent(new Event("theme"));
  };
  apply();
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", () => {
      choice = { auto: "light", light: "dark", dark: "auto" }[choice];
      try { localStorage.setItem("afresh.theme", choice); } catch { /* private windows may refuse */ }
      apply();
    });
  });
})();

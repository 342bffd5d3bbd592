/** Light or dark: as the system says, unless a person chose. */

import { get, setText } from "./dom.js";

const KEY = "tiny-harness.theme";
const NEXT = { system: "light", light: "dark", dark: "system" };
const WORDS = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" };

/** @typedef {keyof typeof NEXT} Theme */

/** Show the theme that was chosen, and let it be chosen. */
export function startTheme() {
  const button = get("theme", HTMLButtonElement);
  let theme = read();
  const show = () => {
    document.documentElement.dataset.theme = theme;
    setText(button, WORDS[theme]);
  };
  button.addEventListener("click", () => {
    theme = /** @type {Theme} */ (NEXT[theme]);
    localStorage.setItem(KEY, theme);
    show();
  });
  show();
}

/** @returns {Theme} */
function read() {
  const stored = localStorage.getItem(KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

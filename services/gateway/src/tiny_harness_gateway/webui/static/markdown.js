/** Shows Markdown as elements, built one by one and never from HTML; what is finished is not touched again. */

import { make } from "./dom.js";
import { parseBlocks } from "./markdown-blocks.js";
import { safeUrl } from "./markdown-inline.js";

/** @typedef {import("./markdown-blocks.js").Block} Block */
/** @typedef {import("./markdown-inline.js").Inline} Inline */

const PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/;
// what cannot be seen, or turns what follows around, is shown
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
const COPIED_MS = 2_000;

/** One reply, which may still be growing. */
export class MarkdownView {
  #root;
  #text = "";
  /** Where each block that is shown begins in the text. @type {number[]} */
  #starts = [];
  /** What the last but one showed: a longer last line may yet join the two. */
  #settling = "";

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
  }

  /** Show a text. One that only grew changes nothing but the last block, and the one before if they join. @param {string} text */
  update(text) {
    const isGrown = this.#text !== "" && text.startsWith(this.#text);
    let kept = isGrown ? Math.max(0, this.#starts.length - 2) : 0;
    const from = isGrown ? (this.#starts[kept] ?? 0) : 0;
    const rest = text.slice(from);
    const lines = lineStarts(rest);
    const blocks = parseBlocks(rest);
    this.#text = text;
    this.#starts = [...this.#starts.slice(0, kept), ...blocks.map(({ line }) => from + (lines[line] ?? 0))];
    const isSettled = isGrown && blocks.length > 1 && JSON.stringify(blocks[0]?.block) === this.#settling;
    if (isSettled) kept += 1;
    while (this.#root.children.length > kept) this.#root.lastElementChild?.remove();
    this.#root.append(...blocks.slice(isSettled ? 1 : 0).map(({ block }) => showBlock(block)));
    this.#settling = JSON.stringify(blocks.at(-2)?.block) ?? "";
  }
}

/** @param {string} text */
function lineStarts(text) {
  const starts = [0];
  for (const { index } of text.matchAll(/\r\n?|\n/g)) starts.push(index + (text.startsWith("\r\n", index) ? 2 : 1));
  return starts;
}

/** @param {Block} block @returns {HTMLElement} */
function showBlock(block) {
  switch (block.kind) {
    case "paragraph":
      return make("p", { dir: "auto" }, ...block.inlines.map(showInline));
    case "heading":
      return showHeading(block.level, block.inlines);
    case "code":
      return showCode(block.language, block.text);
    case "quote":
      return make("blockquote", { dir: "auto" }, ...block.blocks.map(showBlock));
    case "list":
      return showList(block);
    case "table":
      return showTable(block);
    case "rule":
      return make("hr");
  }
}

/** Headings stand below the message's own, which is an `h2`. @param {number} level @param {Inline[]} inlines */
function showHeading(level, inlines) {
  const tag = /** @type {"h3" | "h4" | "h5" | "h6"} */ (`h${Math.min(6, level + 2)}`);
  return make(tag, { dir: "auto" }, ...inlines.map(showInline));
}

/** @param {string} language @param {string} text */
function showCode(language, text) {
  const copy = make("button", { type: "button", class: "copy" }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
    setTimeout(() => (copy.textContent = "Copy"), COPIED_MS);
  });
  const label = language ? `Code, ${language}` : "Code";
  return make(
    "div",
    { class: "code" },
    make("div", { class: "code-bar" }, make("span", {}, seen(language)), copy),
    make("pre", { tabIndex: 0, role: "group", "aria-label": label, dir: "ltr" }, make("code", {}, seen(text))),
  );
}

/** @param {Extract<Block, {kind: "list"}>} list */
function showList({ start, items }) {
  const lines = items.map(({ blocks, checked }) => {
    const box = checked === null ? null : `${checked ? "☑" : "☐"} `;
    const [only] = blocks;
    // An item of one paragraph stands without one, as in any tight list.
    const inner = blocks.length === 1 && only?.kind === "paragraph" ? only.inlines.map(showInline) : blocks.map(showBlock);
    return make("li", { dir: "auto" }, box, ...inner);
  });
  return start === null ? make("ul", {}, ...lines) : make("ol", { start }, ...lines);
}

/** @param {Extract<Block, {kind: "table"}>} table */
function showTable({ head, rows, align }) {
  /** @param {"th" | "td"} tag @param {Inline[]} cell @param {number} place */
  const show = (tag, cell, place) => make(tag, { dir: "auto", class: align[place] || undefined }, ...cell.map(showInline));
  const top = make("tr", {}, ...head.map((cell, place) => show("th", cell, place)));
  const body = rows.map((row) => make("tr", {}, ...row.map((cell, place) => show("td", cell, place))));
  const table = make("table", {}, make("thead", {}, top), make("tbody", {}, ...body));
  return make("div", { class: "table", tabIndex: 0, role: "group", "aria-label": "Table" }, table);
}

/** @param {Inline} inline @returns {Node} */
function showInline(inline) {
  switch (inline.kind) {
    case "text":
      return document.createTextNode(seen(inline.text));
    case "code":
      return make("code", {}, seen(inline.text));
    case "break":
      return make("br");
    case "link":
      return showLink(inline.url, inline.children.map(showInline));
    case "image":
      return showImage(inline.alt, inline.url);
    case "strong":
      return make("strong", {}, ...inline.children.map(showInline));
    case "emphasis":
      return make("em", {}, ...inline.children.map(showInline));
    case "strike":
      return make("del", {}, ...inline.children.map(showInline));
  }
}

/** @param {string} href @param {Node[]} children */
const showLink = (href, children) =>
  make("a", { href, target: "_blank", rel: "noopener noreferrer nofollow" }, ...children);

/** A picture of another host would tell it who reads: it is only a link. @param {string} alt @param {string} url */
function showImage(alt, url) {
  if (PICTURE.test(url)) return make("img", { src: url, alt: seen(alt) });
  const words = seen(alt || "image");
  const href = safeUrl(url);
  if (!href) return document.createTextNode(words);
  return showLink(href, [document.createTextNode(`Image: ${words} (${new URL(href).host})`)]);
}

/** Let nothing hide: what cannot be seen, or turns words around, stands as its number. @param {string} text */
const seen = (text) =>
  text.replace(UNSEEN, (char) => (char === "\r" ? "" : `⟨U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`));

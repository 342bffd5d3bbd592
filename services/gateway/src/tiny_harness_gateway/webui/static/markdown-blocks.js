/** Markdown's blocks: a robust, linear subset of CommonMark with GitHub's tables and task lists. HTML is text. No page. */

import { parseInlines } from "./markdown-inline.js";

/** @typedef {import("./markdown-inline.js").Inline} Inline */
/** @typedef {{blocks: Block[], checked: boolean | null}} ListItem */

/**
 * @typedef {{kind: "paragraph", inlines: Inline[]}
 *   | {kind: "heading", level: number, inlines: Inline[]}
 *   | {kind: "code", language: string, text: string}
 *   | {kind: "quote", blocks: Block[]}
 *   | {kind: "list", start: number | null, items: ListItem[]}
 *   | {kind: "table", head: Inline[][], rows: Inline[][][], align: string[]}
 *   | {kind: "rule"}} Block
 */

/** @typedef {{block: Block, line: number}} Placed A block, and the number of its first line. */

const MAX_DEPTH = 12;
const MAX_CELLS = 50;
// each part can match in one way only: a line of marks must not be tried in all its divisions
const FENCE = /^ {0,3}(`{3,}(?!`)(?=[^`]*$)|~{3,}(?!~))[ \t]*(\S*)/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:( {1,4})(?=\S)|\s*$| +)/;
const UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/;
const DELIMITERS = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

/**
 * Read a text.
 * @param {string} text
 * @returns {Placed[]}
 */
export const parseBlocks = (text) => new Blocks(text.replace(/\r\n?/g, "\n").split("\n"), 0).read();

class Blocks {
  #lines;
  #depth;
  #at = 0;

  /** @param {string[]} lines @param {number} depth */
  constructor(lines, depth) {
    this.#lines = lines;
    this.#depth = depth;
  }

  /** @returns {Placed[]} */
  read() {
    /** @type {Placed[]} */
    const found = [];
    while (this.#at < this.#lines.length) {
      const line = this.#at;
      if (isBlank(this.#line)) this.#at += 1;
      else found.push({ block: this.#block(), line });
    }
    return found;
  }

  get #line() {
    return this.#lines[this.#at] ?? "";
  }

  /** @returns {Block} */
  #block() {
    const line = this.#line;
    if (this.#depth > MAX_DEPTH) return this.#paragraph();
    if (line.startsWith("    ")) return this.#indented();
    if (FENCE.test(line)) return this.#fenced();
    if (HEADING.test(line)) return this.#heading();
    if (RULE.test(line)) {
      this.#at += 1;
      return { kind: "rule" };
    }
    if (QUOTE.test(line)) return this.#quote();
    if (ITEM.test(line)) return this.#list();
    return this.#isTable() ? this.#table() : this.#paragraph();
  }

  /** @returns {Block} */
  #fenced() {
    const [, fence = "", language = ""] = FENCE.exec(this.#line) ?? [];
    const indent = this.#line.length - this.#line.trimStart().length;
    const close = new RegExp(`^ {0,3}${fence[0]}{${fence.length},}[ \\t]*$`);
    const text = [];
    this.#at += 1;
    while (this.#at < this.#lines.length && !close.test(this.#line)) {
      text.push(this.#line.slice(Math.min(indent, this.#line.length - this.#line.trimStart().length)));
      this.#at += 1;
    }
    this.#at += 1;
    return { kind: "code", language, text: text.join("\n") };
  }

  /** @returns {Block} */
  #indented() {
    const text = [];
    while (this.#at < this.#lines.length && (this.#line.startsWith("    ") || isBlank(this.#line))) {
      text.push(this.#line.slice(4));
      this.#at += 1;
    }
    return { kind: "code", language: "", text: text.join("\n").trimEnd() };
  }

  /** @returns {Block} */
  #heading() {
    const [, marks = "", words = ""] = HEADING.exec(this.#line) ?? [];
    this.#at += 1;
    const text = words.trim().replace(/(?:^|[ \t])#+$/, "");
    return { kind: "heading", level: marks.length, inlines: parseInlines(text.trim()) };
  }

  /** @returns {Block} */
  #quote() {
    const inner = [];
    while (this.#at < this.#lines.length) {
      if (QUOTE.test(this.#line)) inner.push(this.#line.replace(QUOTE, ""));
      else if (isBlank(this.#line) || this.#startsBlock()) break;
      else inner.push(this.#line);
      this.#at += 1;
    }
    return { kind: "quote", blocks: this.#inner(inner) };
  }

  /** @returns {Block} */
  #list() {
    const [, , mark = ""] = ITEM.exec(this.#line) ?? [];
    const start = /^\d/.test(mark) ? parseInt(mark, 10) : null;
    /** @type {ListItem[]} */
    const items = [];
    while (this.#at < this.#lines.length && !RULE.test(this.#line)) {
      const [, , next = ""] = ITEM.exec(this.#line) ?? [];
      if (!next || next.at(-1) !== mark.at(-1)) break;
      items.push(this.#item());
    }
    return { kind: "list", start, items };
  }

  /** @returns {ListItem} */
  #item() {
    const [, pad = "", mark = "", space = " "] = ITEM.exec(this.#line) ?? [];
    const indent = pad.length + mark.length + space.length;
    const inner = [this.#line.slice(indent)];
    this.#at += 1;
    while (this.#at < this.#lines.length && this.#belongs(inner, indent)) {
      const line = this.#line;
      inner.push(line.slice(Math.min(indent, line.length - line.trimStart().length)));
      this.#at += 1;
    }
    while (inner.length > 1 && isBlank(inner.at(-1) ?? "")) inner.pop();
    const [, box = "", rest = ""] = /^\[([ xX])\]\s+(.*)$/.exec(inner[0] ?? "") ?? [];
    if (box) inner[0] = rest;
    return { blocks: this.#inner(inner), checked: box ? box !== " " : null };
  }

  /** Whether the line goes on with an item: it is indented, blank before such a one, or its paragraph's. @param {string[]} inner @param {number} indent */
  #belongs(inner, indent) {
    if (isBlank(this.#line)) {
      let next = this.#at + 1;
      while (next < this.#lines.length && isBlank(this.#lines[next] ?? "")) next += 1;
      const after = this.#lines[next] ?? "";
      return next < this.#lines.length && (indentOf(after) >= indent || ITEM.test(after));
    }
    if (indentOf(this.#line) >= indent) return true;
    return !isBlank(inner.at(-1) ?? "") && !this.#startsBlock() && !ITEM.test(this.#line);
  }

  #isTable() {
    const under = this.#lines[this.#at + 1] ?? "";
    if (!this.#line.includes("|") || !under.includes("-") || !DELIMITERS.test(under)) return false;
    return cells(this.#line).length === cells(under).length;
  }

  /** @returns {Block} */
  #table() {
    const head = cells(this.#line);
    const align = cells(this.#lines[this.#at + 1] ?? "").map(alignOf);
    const rows = [];
    this.#at += 2;
    while (this.#at < this.#lines.length && !isBlank(this.#line) && !this.#startsBlock()) {
      const row = cells(this.#line);
      rows.push(head.map((_, place) => parseInlines(row[place] ?? "")));
      this.#at += 1;
    }
    return { kind: "table", head: head.map(parseInlines), rows, align };
  }

  /** @returns {Block} */
  #paragraph() {
    const first = this.#at;
    const text = [this.#line.trimStart()];
    this.#at += 1;
    while (this.#at < this.#lines.length && !isBlank(this.#line)) {
      const [, under] = UNDERLINE.exec(this.#line) ?? [];
      if (under && this.#depth <= MAX_DEPTH) {
        this.#at += 1;
        return { kind: "heading", level: under[0] === "=" ? 1 : 2, inlines: parseInlines(text.join("\n").trim()) };
      }
      if (this.#depth <= MAX_DEPTH && (this.#startsBlock() || this.#isTable()) && this.#at > first) break;
      text.push(this.#line.trimStart());
      this.#at += 1;
    }
    return { kind: "paragraph", inlines: parseInlines(text.join("\n").trimEnd()) };
  }

  /** Whether a block begins with the line that ends a paragraph. */
  #startsBlock() {
    const line = this.#line;
    if (FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line)) return true;
    const [, , mark = ""] = ITEM.exec(line) ?? [];
    return mark !== "" && line.trim() !== mark && (!/^\d/.test(mark) || parseInt(mark, 10) === 1);
  }

  /** @param {string[]} lines */
  #inner(lines) {
    return new Blocks(lines, this.#depth + 1).read().map(({ block }) => block);
  }
}

/** @param {string} line */
const isBlank = (line) => line.trim() === "";
/** @param {string} line */
const indentOf = (line) => line.length - line.trimStart().length;
/** @param {string} cell */
const alignOf = (cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "end") : "");

/** Cut a row into its cells; a bar in code or behind a backslash is none. @param {string} line */
function cells(line) {
  const row = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return row.split(/(?<!\\)\|/, MAX_CELLS).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

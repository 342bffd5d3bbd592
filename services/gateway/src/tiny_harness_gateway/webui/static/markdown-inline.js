/** Markdown within a line: emphasis, code, links. Linear in the length of the text, whatever it holds. No page. */

/**
 * @typedef {{kind: "text", text: string}
 *   | {kind: "code", text: string}
 *   | {kind: "break"}
 *   | {kind: "image", alt: string, url: string}
 *   | {kind: "link", url: string, children: Inline[]}
 *   | {kind: "strong" | "emphasis" | "strike", children: Inline[]}} Inline
 */

/** @typedef {{kind: "run", mark: string, count: number, opens: boolean, closes: boolean, starts: Style[], ends: number, left: number}} Run */
/** @typedef {"strong" | "emphasis" | "strike"} Style */

/** Styles within one another; deeper ones are shown without. */
const MAX_DEPTH = 16;
const MAX_URL = 4_000;
const ESCAPED = /[!-/:-@[-`{-~]/;
const SPACE = /\s/;
const PUNCTUATION = /[\p{P}\p{S}]/u;
const DESTINATION = /\(\s*(?!\s)(?:<([^<>\n]*)>|((?:[^\s()\\]|\\.|\([^\s()]*\))*))(?:\s+(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\)))?\s*\)/y;
const ANGLE = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/iy;
const BARE = /https?:\/\/[^\s<>"'`|*]{1,2000}/iy;
const ENTITY = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos|nbsp));/g;
/** @type {Record<string, string>} */
const NAMED = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

/**
 * Read a text.
 * @param {string} text
 * @returns {Inline[]}
 */
export const parseInlines = (text) => new Reader(text).read(0, text.length, true);

/**
 * Give the address that a link may lead to; null if it may lead nowhere.
 * @param {string} raw
 */
export function safeUrl(raw) {
// browsers skip them, and would see another scheme than we do
  const url = entities(raw).replace(/[\u0000-\u0020\u007f-\u00a0\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]/g, "");
  if (url.length > MAX_URL || !/^(?:https?:\/\/|mailto:)[^\s]/i.test(url)) return null;
  try {
    return new URL(url).href;
  } catch {
    return null;
  }
}

/** @param {string} text */
export const entities = (text) =>
  text.replace(ENTITY, (_whole, decimal, hex, name) => {
    if (name) return NAMED[name] ?? "";
    const code = parseInt(decimal ?? hex, decimal ? 10 : 16);
    return code > 0 && code <= 0x10_ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : "\ufffd";
  });

class Reader {
  #text;
  /** Where each bracket is closed. @type {Map<number, number>} */
  #brackets = new Map();
  /** Where runs of backticks begin, by their length. @type {Map<number, number[]>} */
  #ticks = new Map();

  /** @param {string} text */
  constructor(text) {
    this.#text = text;
    for (const { 0: run, index } of text.matchAll(/`+/g)) {
      const known = this.#ticks.get(run.length);
      if (known) known.push(index);
      else this.#ticks.set(run.length, [index]);
    }
    for (const places of this.#ticks.values()) places.reverse();
    this.#match();
  }

  /** Find which brackets belong together. */
  #match() {
    /** @type {number[]} */
    const open = [];
    for (let at = 0; at < this.#text.length; at += 1) {
      const char = this.#text[at];
      if (char === "\\") at += 1;
      else if (char === "[") open.push(at);
      else if (char === "]") {
        const start = open.pop();
        if (start !== undefined) this.#brackets.set(start, at);
      }
    }
  }

  /**
   * @param {number} start
   * @param {number} end
   * @param {boolean} links Whether links may stand here; none stands in another.
   * @returns {Inline[]}
   */
  read(start, end, links) {
    /** @type {(Inline | Run)[]} */
    const found = [];
    let plain = "";
    const flush = () => {
      if (plain) found.push({ kind: "text", text: entities(plain) });
      plain = "";
    };
    let at = start;
    while (at < end) {
      const piece = this.#piece(at, end, links);
      if (!piece) {
        plain += this.#text[at];
        at += 1;
        continue;
      }
      flush();
      if (piece.node) found.push(piece.node);
      at = piece.end;
    }
    flush();
    return nest(found);
  }

  /** @param {number} at @param {number} end @param {boolean} links @returns {{node: Inline | Run, end: number} | null} */
  #piece(at, end, links) {
    const char = /** @type {string} */ (this.#text[at]);
    if (char === "\\") return this.#escape(at, end);
    if (char === "`") return this.#code(at, end);
    if (char === "\n") return this.#lineEnd(at);
    if (char === "*" || char === "_" || char === "~") return this.#run(at, end, char);
    if (char === "!" && this.#text[at + 1] === "[") return this.#image(at, end);
    if (!links) return null;
    if (char === "[") return this.#link(at, end);
    if (char === "<") return this.#auto(ANGLE, at, end);
    return char === "h" || char === "H" ? this.#bare(at, end) : null;
  }

  /** @param {number} at @param {number} end */
  #escape(at, end) {
    const next = at + 1 < end ? /** @type {string} */ (this.#text[at + 1]) : "";
    if (next === "\n") return { node: /** @type {Inline} */ ({ kind: "break" }), end: at + 2 };
    const text = next && ESCAPED.test(next) ? next : "";
    return text ? { node: /** @type {Inline} */ ({ kind: "text", text }), end: at + 2 } : null;
  }

  /** @param {number} at @param {number} end */
  #code(at, end) {
    let length = 1;
    while (this.#text[at + length] === "`") length += 1;
    const places = this.#ticks.get(length) ?? [];
    while (places.length && /** @type {number} */ (places.at(-1)) <= at) places.pop();
    const close = places.at(-1);
    if (close === undefined || close + length > end) {
      return { node: /** @type {Inline} */ ({ kind: "text", text: "`".repeat(length) }), end: at + length };
    }
    const inner = this.#text.slice(at + length, close).replaceAll("\n", " ");
    const isPadded = inner.startsWith(" ") && inner.endsWith(" ") && inner.trim() !== "";
    const node = /** @type {Inline} */ ({ kind: "code", text: isPadded ? inner.slice(1, -1) : inner });
    return { node, end: close + length };
  }

  /** Two spaces before the end of a line break it. @param {number} at */
  #lineEnd(at) {
    const isHard = this.#text[at - 1] === " " && this.#text[at - 2] === " ";
    return isHard ? { node: /** @type {Inline} */ ({ kind: "break" }), end: at + 1 } : null;
  }

  /** @param {number} at @param {number} end @param {string} mark */
  #run(at, end, mark) {
    let stop = at + 1;
    while (stop < end && this.#text[stop] === mark) stop += 1;
    const count = stop - at;
    if (mark === "~" && count !== 2) {
      return { node: /** @type {Inline} */ ({ kind: "text", text: mark.repeat(count) }), end: stop };
    }
    const before = this.#text[at - 1] ?? " ";
    const after = this.#text[stop] ?? " ";
    const [isBeforeOut, isAfterOut] = [SPACE.test(before), SPACE.test(after)];
    const [isBeforeMark, isAfterMark] = [PUNCTUATION.test(before), PUNCTUATION.test(after)];
    const leads = !isAfterOut && (!isAfterMark || isBeforeOut || isBeforeMark);
    const trails = !isBeforeOut && (!isBeforeMark || isAfterOut || isAfterMark);
    const isWord = mark === "_";
    const opens = leads && (!isWord || !trails || isBeforeMark);
    const closes = trails && (!isWord || !leads || isAfterMark);
    return { node: /** @type {Run} */ ({ kind: "run", mark, count, opens, closes, starts: [], ends: 0, left: count }), end: stop };
  }

  /** @param {number} at @param {number} end */
  #link(at, end) {
    const target = this.#target(at, end);
    const url = target && safeUrl(target.url);
    if (!target || !url) return null;
    const node = /** @type {Inline} */ ({ kind: "link", url, children: this.read(at + 1, target.close, false) });
    return { node, end: target.end };
  }

  /** @param {number} at @param {number} end */
  #image(at, end) {
    const target = this.#target(at + 1, end);
    if (!target) return null;
    const alt = this.#text.slice(at + 2, target.close).replace(/[*_`[\]!]/g, "");
    return { node: /** @type {Inline} */ ({ kind: "image", alt: entities(alt), url: target.url }), end: target.end };
  }

  /** Read where a bracket leads. @param {number} at @param {number} end */
  #target(at, end) {
    const close = this.#brackets.get(at);
    if (close === undefined || close >= end || this.#text[close + 1] !== "(") return null;
    DESTINATION.lastIndex = close + 1;
    const told = DESTINATION.exec(this.#text);
    if (!told || DESTINATION.lastIndex > end) return null;
    const url = (told[1] ?? told[2] ?? "").replace(/\\([!-/:-@[-`{-~])/g, "$1");
    return { close, url, end: DESTINATION.lastIndex };
  }

  /** @param {RegExp} pattern @param {number} at @param {number} end */
  #auto(pattern, at, end) {
    pattern.lastIndex = at;
    const told = pattern.exec(this.#text);
    const url = told && pattern.lastIndex <= end && safeUrl(told[1] ?? told[0]);
    if (!told || !url) return null;
    const children = /** @type {Inline[]} */ ([{ kind: "text", text: told[1] ?? told[0] }]);
    return { node: /** @type {Inline} */ ({ kind: "link", url, children }), end: pattern.lastIndex };
  }

  /** An address in plain text ends before the punctuation of its sentence. @param {number} at @param {number} end */
  #bare(at, end) {
    if (at > 0 && /[\w/]/.test(/** @type {string} */ (this.#text[at - 1]))) return null;
    BARE.lastIndex = at;
    const told = BARE.exec(this.#text)?.[0].slice(0, end - at);
    if (!told) return null;
    let shown = told.replace(/[.,;:!?\]]+$/, "");
    if (shown.endsWith(")") && !shown.includes("(")) shown = shown.slice(0, -1);
    const url = safeUrl(shown);
    if (!url) return null;
    const node = /** @type {Inline} */ ({ kind: "link", url, children: [{ kind: "text", text: shown }] });
    return { node, end: at + shown.length };
  }
}

/** Pair runs of marks, and put what is between them into one another. @param {(Inline | Run)[]} found @returns {Inline[]} */
function nest(found) {
  pair(found);
  /** @type {{style: Style | null, children: Inline[]}[]} */
  const stack = [{ style: null, children: [] }];
  const here = () => /** @type {{style: Style | null, children: Inline[]}} */ (stack.at(-1)).children;
  for (const node of found) {
    if (node.kind !== "run") {
      here().push(node);
      continue;
    }
    for (let n = 0; n < node.ends; n += 1) {
      const { style, children } = /** @type {{style: Style, children: Inline[]}} */ (stack.pop());
      if (stack.length <= MAX_DEPTH) here().push({ kind: style, children });
      else here().push(...children);
    }
    if (node.left) here().push({ kind: "text", text: node.mark.repeat(node.left) });
    for (const style of node.starts.toReversed()) stack.push({ style, children: [] });
  }
  return /** @type {{children: Inline[]}} */ (stack[0]).children;
}

/** Say of each run what it begins and ends: `starts` innermost first. @param {(Inline | Run)[]} found */
function pair(found) {
  /** Runs that may still begin something, with their places, by their mark. @type {Record<string, {run: Run, at: number}[]>} */
  const open = { "*": [], _: [], "~": [] };
  for (const [at, run] of found.entries()) {
    if (run.kind !== "run") continue;
    const own = /** @type {{run: Run, at: number}[]} */ (open[run.mark]);
    while (run.closes && run.left > 0 && own.length > 0) {
      const { run: opener, at: place } = /** @type {{run: Run, at: number}} */ (own.at(-1));
      if ((opener.closes || run.opens) && (opener.count + run.count) % 3 === 0 && opener.count % 3 !== 0) break;
      const used = Math.min(opener.left, run.left) >= 2 ? 2 : 1;
      opener.starts.push(run.mark === "~" ? "strike" : used === 2 ? "strong" : "emphasis");
      run.ends += 1;
      opener.left -= used;
      run.left -= used;
      // What begins in between ends nowhere: styles do not overlap.
      for (const others of Object.values(open)) while (others.length && /** @type {any} */ (others.at(-1)).at > place) others.pop();
      if (opener.left === 0) own.pop();
    }
    if (run.opens && run.left > 0) own.push({ run, at });
  }
}

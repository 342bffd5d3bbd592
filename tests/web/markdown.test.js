import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Element } from "./document.js";
import { MarkdownView } from "../../services/gateway/src/tiny_harness_gateway/webui/static/markdown.js";
import { parseBlocks } from "../../services/gateway/src/tiny_harness_gateway/webui/static/markdown-blocks.js";
import { safeUrl } from "../../services/gateway/src/tiny_harness_gateway/webui/static/markdown-inline.js";

/** @param {string} text */
function shown(text) {
  const root = new Element("root");
  new MarkdownView(/** @type {any} */ (root)).update(text);
  return root.childNodes.map((child) => child.html).join("");
}

/** @type {[string, string, string][]} */
const RULES = [
  ["a paragraph of two lines", "one\ntwo", "<p>one\ntwo</p>"],
  ["paragraphs", "one\n\ntwo", "<p>one</p><p>two</p>"],
  ["headings below the message's own", "# A\n\n#### B ##\nC\n===", "<h3>A</h3><h6>B</h6><h3>C</h3>"],
  ["no heading without a space", "#tag", "<p>#tag</p>"],
  ["emphasis", "*a* **b** ***c*** _d_ __e__ ~~f~~", "<p><em>a</em> <strong>b</strong> <em><strong>c</strong></em> <em>d</em> <strong>e</strong> <del>f</del></p>"],
  ["emphasis within another", "**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"],
  ["emphasis that shares its end", "*a **b***", "<p><em>a <strong>b</strong></em></p>"],
  ["marks that are none", "2 * 3 * 4, snake_case_name, a ** b, ~c~", "<p>2 * 3 * 4, snake_case_name, a ** b, ~c~</p>"],
  ["code", "`a` ``b ` c`` `` ` ``", "<p><code>a</code> <code>b ` c</code> <code>`</code></p>"],
  ["code that is not closed", "`a ``b", "<p>`a ``b</p>"],
  ["no styles in code", "`*a*` *`b*`", "<p><code>*a*</code> *<code>b*</code></p>"],
  ["escapes and entities", "\\*a\\* &lt;b&gt; &amp; &#65;&#x42; &nope;", "<p>*a* &lt;b> &amp; AB &amp;nope;</p>"],
  ["breaks", "a  \nb\\\nc", "<p>a  <br></br>b<br></br>c</p>"],
  ["links", "[a *b*](https://x.example/p?q=1 \"t\")", "<p><a https://x.example/p?q=1>a <em>b</em></a></p>"],
  ["links with brackets in their words and address", "[a [b]](https://x.example/a_(b))", "<p><a https://x.example/a_(b)>a [b]</a></p>"],
  ["links that lead nowhere", "[a] [b](c) [d]()", "<p>[a] [b](c) [d]()</p>"],
  ["addresses", "<https://x.example> see https://y.example/a_b_c. (http://z.example/)", "<p><a https://x.example/>https://x.example</a> see <a https://y.example/a_b_c>https://y.example/a_b_c</a>. (<a http://z.example/>http://z.example/</a>)</p>"],
  ["mail", "[m](mailto:a@b.example)", "<p><a mailto:a@b.example>m</a></p>"],
  ["pictures as links", "![a](https://x.example/i.png)", "<p><a https://x.example/i.png>Image: a (x.example)</a></p>"],
  ["pictures that are here", "![a](data:image/png;base64,AAAA)", "<p><img data:image/png;base64,AAAA></img></p>"],
  ["bullets", "- a\n- b\n  c\n* d", "<ul><li>a</li><li>b\nc</li></ul><ul><li>d</li></ul>"],
  ["numbers", "3. a\n4. b", "<ol><li>a</li><li>b</li></ol>"],
  ["lists in lists", "- a\n  - b\n    - c\n- d", "<ul><li><p>a</p><ul><li><p>b</p><ul><li>c</li></ul></li></ul></li><li>d</li></ul>"],
  ["lists with paragraphs", "- a\n\n  b\n- c", "<ul><li><p>a</p><p>b</p></li><li>c</li></ul>"],
  ["tasks", "- [x] a\n- [ ] b", "<ul><li>☑ a</li><li>☐ b</li></ul>"],
  ["a list after a paragraph, and a number that is none", "a\n- b\n\nin\n1984. c", "<p>a</p><ul><li>b</li></ul><p>in\n1984. c</p>"],
  ["quotes", "> a\n> > b\n\nc", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote><p>c</p>"],
  ["a quote's last line without its mark", "> a\nb", "<blockquote><p>a\nb</p></blockquote>"],
  ["rules", "a\n\n---\n\n* * *", "<p>a</p><hr></hr><hr></hr>"],
  ["html is text", "<b>a</b> <!-- c -->", "<p>&lt;b>a&lt;/b> &lt;!-- c --></p>"],
];

for (const [name, text, html] of RULES) test(`it shows ${name}`, () => assert.equal(shown(text), html));

test("code stands in a frame with its language and a button", () => {
  const html = shown("```python\nif a:\n    b\n```\nafter");
  assert.equal(html, "<div><div><span>python</span><button>Copy</button></div><pre><code>if a:\n    b</code></pre></div><p>after</p>");
  assert.match(shown("~~~\n```\n~~~"), /<code>```<\/code>/);
  assert.match(shown("    indented\n\n    code\n\nafter"), /<code>indented\n\ncode<\/code>.*<p>after<\/p>/);
  assert.match(shown("```\nnever closed"), /<code>never closed<\/code>/);
});

test("tables have a head, aligned cells, and as many of them as the head", () => {
  const html = shown("| a | b |\n|:-:|--:|\n| 1 | `x\\|y` |\n| 2 |\n| 3 | 4 | 5 |\n\nafter");
  assert.equal(html, "<div><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td><code>x|y</code></td></tr><tr><td>2</td><td></td></tr><tr><td>3</td><td>4</td></tr></tbody></table></div><p>after</p>");
  assert.equal(shown("a | b\nc | d"), "<p>a | b\nc | d</p>");
});

test("only web and mail addresses lead anywhere, however they are written", () => {
  const bad = [
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)", "java\tscript:alert(1)",
    "\u0001javascript:alert(1)", "&#106;avascript:alert(1)", "&#x6a;avascript:alert(1)", "java&#10;script:alert(1)", "vbscript:x",
    "data:text/html,<script>alert(1)</script>", "file:///etc/passwd", "//x.example", "/ui/", "x.html", "", "https:", "http://",
    "\u200bjavascript:alert(1)", "javascript\u00ad:alert(1)", `https://x.example/${"a".repeat(5_000)}`,
  ];
  for (const url of bad) assert.equal(safeUrl(url), null, url);
  assert.equal(safeUrl("HTTPS://x.example/ä"), "https://x.example/%C3%A4");
});

test("what is hostile is shown, and nothing else", () => {
  const html = shown(readFileSync(new URL("hostile.md", import.meta.url), "utf8"));
  assert.doesNotMatch(html, /<(script|iframe|svg|style|form|object|embed|input|details)\b/);
  for (const [, url] of html.matchAll(/<(?:a|img) (\S+?)>/g)) assert.match(/** @type {string} */ (url), /^(https?:|mailto:|data:image)/);
  assert.match(html, /The end of it/);
});

test("what cannot be seen, or turns words around, is shown as its number", () => {
  assert.equal(shown("a\u202eb\u0000c"), "<p>a⟨U+202E⟩b⟨U+0000⟩c</p>");
});

const LONG = ["# T", "", "one *two* [x](https://x.example)", "", "- a", "  - b", "", "| a | b |", "|---|---|", "| 1 | 2 |", "", "```js", "x", "```", "", "> q", "end  ", "of it", ""].join("\n");

test("a text that grows letter by letter ends as the text at once", () => {
  const root = new Element("root");
  const view = new MarkdownView(/** @type {any} */ (root));
  for (let end = 1; end <= LONG.length; end += 1) {
    view.update(LONG.slice(0, end));
    assert.equal(root.childNodes.map((child) => child.html).join(""), shown(LONG.slice(0, end)), JSON.stringify(LONG.slice(0, end)));
  }
});

/** @type {[string, string, string][]} */
const JOINED = [
  ["a number after an empty line", "1. a\n\n2. b", "<ol><li>a</li><li>b</li></ol>"],
  ["a line that looked like a rule", "- a\n---b", "<ul><li>a\n---b</li></ul>"],
  ["a line that looked like a fence of backticks", "- a\n```b`c", "<ul><li>a\n```b`c</li></ul>"],
];

for (const [name, text, html] of JOINED) {
  test(`blocks that ${name} joins are joined while the text grows`, () => {
    const root = new Element("root");
    const view = new MarkdownView(/** @type {any} */ (root));
    for (let end = 1; end <= text.length; end += 1) view.update(text.slice(0, end));
    assert.equal(root.childNodes.map((child) => child.html).join(""), html);
  });
}

test("what is finished is not touched while the text grows, and another text replaces it", () => {
  const root = new Element("root");
  const view = new MarkdownView(/** @type {any} */ (root));
  view.update("one\n\ntwo");
  const [first] = root.children;
  view.update("one\n\ntwo and more\n\nthree");
  assert.equal(root.children[0], first);
  view.update("other");
  assert.equal(root.childNodes.map((child) => child.html).join(""), "<p>other</p>");
});

const MEGABYTE = 1_000_000;
/** @type {[string, string][]} */
const HEAVY = [
  ["brackets", "["], ["closing brackets", "]"], ["links", "[a]("], ["images", "![a]("], ["stars", "*"], ["stars and words", "*a "], ["mixed marks", "*_a_ **b "],
  ["underscores", "_a_"], ["backticks", "`"], ["backticks of all lengths", "`a``b```c"], ["quotes", "> "], ["bullets", "- "], ["nested lists", "- a\n  "],
  ["pipes", "|a"], ["rows", "|a|b|\n"], ["tildes", "~~a"], ["angles", "<"], ["addresses", "http://"], ["entities", "&amp;"], ["backslashes", "\\"], ["spaces", " "], ["lines", "\n"],
  ["numbers", "1. "], ["fences", "```\n"], ["headings", "# "], ["underlines", "a\n=\n"], ["parentheses", "[a](("], ["titles", '[a](b "'],
];

/** One line that can be divided in many ways, and fails at its end. @type {[string, string][]} */
const FAILING = [
  ["tildes", `${"~".repeat(100_000)}\``], ["a fence's spaces", `\`\`\`${" ".repeat(300_000)}\``], ["a link's spaces", `[a](${" ".repeat(300_000)}x`],
];

for (const [name, text] of FAILING) {
  test(`a line of ${name} that fails at its end is read in a moment`, () => {
    const started = performance.now();
    parseBlocks(text);
    const took = performance.now() - started;
    assert.ok(took < 5_000, `${Math.round(took)} ms`);
  });
}

for (const [name, piece] of HEAVY) {
  test(`a megabyte of ${name} is read in a moment`, () => {
    const started = performance.now();
    parseBlocks(piece.repeat(MEGABYTE / piece.length));
    const took = performance.now() - started;
    assert.ok(took < 5_000, `${Math.round(took)} ms`);
  });
}

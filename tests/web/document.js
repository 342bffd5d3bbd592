/** As much of a document as the Markdown module needs, for tests without a browser. */

class Text {
  /** @param {string} text */
  constructor(text) {
    this.textContent = text;
  }

  get html() {
    return this.textContent.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  }
}

export class Element {
  /** @type {Map<string, string>} */
  attributes = new Map();
  /** @type {(Element | Text)[]} */
  childNodes = [];
  /** @type {Element | null} */
  parent = null;

  /** @param {string} tag */
  constructor(tag) {
    this.tag = tag;
  }

  /** @returns {Element[]} */
  get children() {
    return this.childNodes.filter((child) => child instanceof Element);
  }

  /** @returns {Element | null} */
  get lastElementChild() {
    return this.children.at(-1) ?? null;
  }

  /** @returns {string} */
  get textContent() {
    return this.childNodes.map((child) => child.textContent).join("");
  }

  /** @param {string} name @param {string} value */
  setAttribute(name, value) {
    this.attributes.set(name, value);
  }

  addEventListener() {}

  /** @param {...(Element | Text | string)} children */
  append(...children) {
    for (const child of children) {
      const node = typeof child === "string" ? new Text(child) : child;
      if (node instanceof Element) node.parent = this;
      this.childNodes.push(node);
    }
  }

  remove() {
    if (this.parent) this.parent.childNodes = this.parent.childNodes.filter((child) => child !== this);
  }

  /** What stands in it, without what only looks concern. @returns {string} */
  get html() {
    const inner = this.childNodes.map((child) => child.html).join("");
    const href = Reflect.get(this, "href") ?? Reflect.get(this, "src");
    return `<${this.tag}${href ? ` ${href}` : ""}>${inner}</${this.tag}>`;
  }
}

Reflect.set(globalThis, "document", {
  createElement: (/** @type {string} */ tag) => new Element(tag),
  createTextNode: (/** @type {string} */ text) => new Text(text),
});

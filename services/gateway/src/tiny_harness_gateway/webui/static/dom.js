/** Makes elements. Text is only ever text. */

/** @typedef {Node | string | null | false | undefined} Child */

/**
 * Make an element: `make("button", {type: "button", onclick: save}, "Save")`.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, unknown>} [props] `class`, `data-…`, `aria-…` and `role` are attributes, the others properties.
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function make(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (/^(class|role|for|(data|aria)-.*)$/.test(name)) element.setAttribute(name, String(value));
    else Reflect.set(element, name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/**
 * Find an element of the page by its id.
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} type
 * @returns {T}
 */
export function get(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}

/** Set an element's text, if it is another one. @param {Element} element @param {string} text */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Let a parent's children be those of the keys, in their order; elements that were there stay.
 * @template T
 * @param {Element} parent
 * @param {readonly T[]} entries
 * @param {(entry: T) => string} keyOf
 * @param {(entry: T, known: HTMLElement | undefined) => HTMLElement} show Makes an element, or brings the known one up to date.
 */
export function keyed(parent, entries, keyOf, show) {
  /** @type {Map<string, HTMLElement>} */
  const known = new Map();
  for (const child of parent.children) if (child instanceof HTMLElement) known.set(child.dataset.key ?? "", child);
  let next = parent.firstElementChild;
  for (const entry of entries) {
    const key = keyOf(entry);
    const element = show(entry, known.get(key));
    element.dataset.key = key;
    known.delete(key);
    if (element === next) next = next.nextElementSibling;
    else parent.insertBefore(element, next);
  }
  for (const element of known.values()) element.remove();
}

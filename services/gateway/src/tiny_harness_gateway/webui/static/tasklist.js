/** The list of tasks, newest change first, that refreshes by itself. */

import { get, keyed, make, setText } from "./dom.js";
import { describe, isSameDay, marks, moment } from "./words.js";

/** @typedef {import("./types.js").TaskView} TaskView */

const EVERY_MS = 4_000;

export class TaskList {
  #list = get("task-list", HTMLElement);
  #more = get("more", HTMLButtonElement);
  #trouble = get("list-trouble", HTMLElement);
  /** @type {Map<string, TaskView>} */
  #views = new Map();
  #after = "";
  #isReading = false;
  #isWanted = false;
  #harness;
  #changed;
  /** @type {string | null} */
  current = null;

  /**
   * @param {import("./harness.js").Harness} harness
   * @param {() => void} changed Is called when names of tasks may have become known.
   */
  constructor(harness, changed) {
    this.#harness = harness;
    this.#changed = changed;
    this.#more.addEventListener("click", () => void this.#readMore());
    setInterval(() => document.visibilityState === "visible" && void this.refresh(), EVERY_MS);
  }

  /** The task's name, empty if it is not known. @param {string} id */
  nameOf(id) {
    return this.#views.get(id)?.data.name ?? "";
  }

  /** Learn of tasks that the list may not have, such as a sub-task's. @param {TaskView} view */
  learn(view) {
    this.#views.set(view.id, { ...view, messages: [] });
    this.show();
  }

  /** Read the first page anew; once more if somebody asks meanwhile. */
  async refresh() {
    this.#isWanted = true;
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (this.#isWanted) {
        this.#isWanted = false;
        const { tasks, after } = await this.#harness.tasks();
        const isFirst = this.#views.size === 0;
        for (const view of tasks) this.#views.set(view.id, view);
        if (isFirst) this.#after = after;
        this.#say("");
      }
    } catch (error) {
      this.#say(error instanceof Error ? error.message : String(error));
    } finally {
      this.#isReading = false;
    }
    this.show();
    this.#changed();
  }

  async #readMore() {
    const { tasks, after } = await this.#harness.tasks(this.#after);
    for (const view of tasks) this.#views.set(view.id, view);
    this.#after = after;
    this.show();
  }

  /** Draw the list. */
  show() {
    const views = [...this.#views.values()].sort((one, other) => (other.at ?? "").localeCompare(one.at ?? ""));
    const today = views.filter((view) => view.at && isSameDay(new Date(view.at), new Date()));
    const groups = [
      { name: "Today", views: today },
      { name: "Earlier", views: views.filter((view) => !today.includes(view)) },
    ].filter((group) => group.views.length > 0);
    keyed(this.#list, groups, (group) => group.name, (group, known) => this.#group(group, known));
    this.#more.hidden = this.#after === "";
  }

  /** @param {{name: string, views: TaskView[]}} group @param {HTMLElement | undefined} known */
  #group({ name, views }, known) {
    const section = known ?? make("section", {}, make("h2", {}, name), make("ul"));
    const list = /** @type {Element} */ (section.lastElementChild);
    keyed(list, views, (view) => view.id, (view, line) => this.#line(view, line));
    return section;
  }

  /** @param {TaskView} view @param {HTMLElement | undefined} known */
  #line(view, known) {
    const line = known ?? make("li", {}, make("a", {}, make("span", { class: "task-name" }), make("span", { class: "dot" }), make("span", { class: "task-words" })));
    const link = /** @type {HTMLAnchorElement} */ (line.firstElementChild);
    const [name, dot, words] = /** @type {[Element, HTMLElement, Element]} */ ([...link.children]);
    const hash = `#/t/${encodeURIComponent(view.id)}`;
    if (link.getAttribute("href") !== hash) link.href = hash;
    setText(name, view.data.name || view.id);
    const told = [describe(view.state, view.subState), ...marks(view.supervision)].join(" · ");
    setText(words, `${told} · ${moment(view.at)}`);
    dot.dataset.state = view.state;
    if (view.id === this.current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    return line;
  }

  /** @param {string} words */
  #say(words) {
    setText(this.#trouble, words);
    this.#trouble.hidden = words === "";
  }
}

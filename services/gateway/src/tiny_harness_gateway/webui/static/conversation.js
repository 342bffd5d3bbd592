/** The conversation: one entry below the other, the end in sight unless the reader is elsewhere. */

import { get, keyed, make, setText } from "./dom.js";
import { MarkdownView } from "./markdown.js";
import { toolWords } from "./words.js";

/** @typedef {import("./room.js").Item} Item */
/** @typedef {import("./room.js").Room} Room */

const SPEAKERS = { user: "You", agent: "Agent", note: "Note to the agent", command: "Harness", refusal: "Harness", tools: "Tools" };
const MARKS = { "": "", sending: "sending …", queued: "queued", writing: "", cut: "cut off" };
/** Pixels from the end that still count as the end. */
const NEAR = 48;

export class Conversation {
  #talk = get("talk", HTMLElement);
  #items = get("items", HTMLElement);
  #latest = get("latest", HTMLButtonElement);
  /** @type {WeakMap<Element, Entry>} */
  #entries = new WeakMap();
  /** @type {Room | null} */
  #room = null;
  #follows = true;

  /** @param {() => void} reachedTop Is called when the reader comes near the first entry. */
  constructor(reachedTop) {
    this.#talk.addEventListener("scroll", () => this.#scrolled(reachedTop), { passive: true });
    this.#latest.addEventListener("click", () => this.toEnd());
    // What grows by itself, such as a window or a composer, keeps the end in sight, too.
    new ResizeObserver(() => this.#follows && this.#jump()).observe(this.#talk);
  }

  /** Bring all up to date with a room. @param {Room} room */
  show(room) {
    const isOther = room !== this.#room;
    if (isOther) this.#items.replaceChildren();
    this.#room = room;
    const first = this.#items.firstElementChild;
    const place = first instanceof HTMLElement ? first.offsetTop - this.#talk.scrollTop : 0;
    keyed(this.#items, room.items, (item) => item.key, (item, known) => this.#entry(item, known));
    if (isOther) {
      this.#follows = room.scrollTop < 0;
      if (!this.#follows) this.#talk.scrollTop = room.scrollTop;
    } else if (first instanceof HTMLElement && first.isConnected && first !== this.#items.firstElementChild) {
      this.#talk.scrollTop = first.offsetTop - place; // what came above does not move what is being read
    }
    if (this.#follows) this.#jump();
    this.#latest.hidden = this.#follows;
  }

  toEnd() {
    this.#follows = true;
    this.#jump();
    this.#latest.hidden = true;
  }

  #jump() {
    this.#talk.scrollTop = this.#talk.scrollHeight;
  }

  /** @param {() => void} reachedTop */
  #scrolled(reachedTop) {
    const { scrollTop, scrollHeight, clientHeight } = this.#talk;
    this.#follows = scrollHeight - scrollTop - clientHeight < NEAR;
    this.#latest.hidden = this.#follows;
    if (this.#room) this.#room.scrollTop = this.#follows ? -1 : scrollTop;
    if (scrollTop < clientHeight) reachedTop();
  }

  /** @param {Item} item @param {HTMLElement | undefined} known */
  #entry(item, known) {
    let entry = known && this.#entries.get(known);
    if (entry?.kind !== item.kind) {
      entry = new Entry(item);
      this.#entries.set(entry.element, entry);
    }
    entry.show(item);
    return entry.element;
  }
}

/** One entry. */
class Entry {
  kind;
  element;
  #body;
  #note = make("p", { class: "mark" });
  /** @type {MarkdownView | null} */
  #markdown = null;
  #shown = "";

  /** @param {Item} item */
  constructor(item) {
    this.kind = item.kind;
    const speaker = make("h2", { class: "unseen" }, SPEAKERS[item.kind]);
    if (item.kind === "tools") {
      this.#body = make("summary");
      this.element = make("details", { class: "entry tools" }, this.#body, make("ul"));
    } else {
      this.#body = make("div", { class: "body", dir: "auto" });
      const head = item.head ? make("p", { class: "head" }, item.head) : null;
      this.element = make("article", { class: `entry ${item.kind}` }, speaker, head, this.#body, this.#note);
    }
    if (item.kind === "agent") this.#markdown = new MarkdownView(this.#body);
  }

  /** @param {Item} item */
  show(item) {
    if (item.kind === "tools") return this.#tools(item);
    if (item.text !== this.#shown) {
      this.#shown = item.text;
      if (this.#markdown) this.#markdown.update(item.text);
      else this.#body.textContent = item.text;
    }
    setText(this.#note, MARKS[item.mark]);
    this.element.classList.toggle("cut", item.mark === "cut");
  }

  /** @param {Item} item */
  #tools(item) {
    const tools = item.tools ?? [];
    const seconds = Math.round(((item.endedAt ?? 0) - (item.startedAt ?? 0)) / 1_000);
    const took = seconds > 0 ? ` · ${seconds} s` : "";
    setText(this.#body, `Ran ${tools.length} tool${tools.length === 1 ? "" : "s"}: ${toolWords(tools)}${took}`);
    const list = /** @type {Element} */ (this.element.lastElementChild);
    if (list.childElementCount === tools.length) return;
    list.replaceChildren(...tools.map((use) => make("li", {}, use.is_error ? `${use.name} ✗ failed` : use.name)));
  }
}

/** Where a person writes: text, slash commands, and the one button that sends or stops. */

import { get, keyed, make, setText } from "./dom.js";
import { fitting, written } from "./offers.js";

/** @typedef {import("./types.js").Offer} Offer */

const MOST_ROWS = 10;

export class Composer {
  #words = get("words", HTMLTextAreaElement);
  #send = get("send", HTMLButtonElement);
  #list = get("commands", HTMLUListElement);
  #said = get("said", HTMLElement);
  /** @type {readonly Offer[]} */
  offers = [];
  /** @type {Offer[]} */
  #shown = [];
  #chosen = 0;
  #mayStop = false;
  #acts;

  /** @param {{send: (text: string) => void, stop: () => void, write: (text: string) => void}} acts */
  constructor(acts) {
    this.#acts = acts;
    get("composer", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      this.#act();
    });
    this.#words.disabled = false;
    this.#words.addEventListener("input", () => this.#typed());
    this.#words.addEventListener("keydown", (event) => this.#key(event));
    this.#words.addEventListener("blur", () => this.#offer([]));
  }

  get text() {
    return this.#words.value;
  }

  set text(text) {
    this.#words.value = text;
    this.#offer([]);
    this.#fit();
  }

  focus() {
    this.#words.focus();
  }

  /**
   * Say what the empty field says, and whether there is a turn to stop.
   * @param {string} prompt
   * @param {boolean} mayStop
   */
  show(prompt, mayStop) {
    this.#words.placeholder = prompt;
    this.#mayStop = mayStop;
    this.#fit();
  }

  #act() {
    const text = this.text;
    if (text.trim()) {
      this.text = "";
      this.#acts.write("");
      this.#acts.send(text);
    } else if (this.#mayStop) {
      this.#acts.stop();
    }
    this.focus();
  }

  #typed() {
    this.#acts.write(this.text);
    this.#offer(fitting(this.offers, this.text));
    this.#fit();
  }

  #fit() {
    const stops = this.#mayStop && !this.text.trim();
    setText(this.#send, stops ? "Stop" : "Send");
    this.#send.disabled = !stops && !this.text.trim();
    this.#words.rows = Math.min(MOST_ROWS, this.text.split("\n").length);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    // An Enter that confirms an input method's composition is not ours.
    if (event.isComposing || event.keyCode === 229) return;
    const isList = this.#shown.length > 0;
    if (isList && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      this.#choose(this.#chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if (isList && event.key === "Escape") {
      this.#offer([]);
    } else if (isList && this.#takes(event)) {
      this.#take(/** @type {Offer} */ (this.#shown[this.#chosen]));
    } else if (event.key === "Enter" && !event.shiftKey) {
      this.#act();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** Whether a key writes the chosen command out; Enter on one that is written out sends it. @param {KeyboardEvent} event */
  #takes(event) {
    if (event.shiftKey || event.ctrlKey || event.altKey) return false;
    const isWritten = this.text === `/${this.#shown[this.#chosen]?.name}`;
    return event.key === "Tab" || (event.key === "Enter" && !isWritten);
  }

  /** @param {Offer} offer */
  #take(offer) {
    this.text = written(offer);
    this.#acts.write(this.text);
    this.focus();
  }

  /** @param {Offer[]} offers */
  #offer(offers) {
    const count = offers.length;
    if (count !== this.#shown.length) {
      setText(this.#said, count ? `${count} command${count === 1 ? "" : "s"}` : "");
    }
    this.#shown = offers;
    this.#list.hidden = count === 0;
    keyed(this.#list, offers, (offer) => offer.name, (offer, known) => known ?? this.#line(offer));
    this.#choose(0);
  }

  /** @param {Offer} offer */
  #line(offer) {
    const head = make("span", { class: "offer" }, `/${offer.name}`);
    const hint = make("span", { class: "hint" }, offer.argumentHint);
    const line = make("li", { role: "option", id: `command-${offer.name}` }, head, " ", hint, " ", offer.description);
    line.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // the field keeps the focus
      this.#take(offer);
    });
    return line;
  }

  /** @param {number} place */
  #choose(place) {
    const count = this.#shown.length;
    this.#chosen = count ? (place + count) % count : 0;
    for (const [index, line] of [...this.#list.children].entries()) {
      line.setAttribute("aria-selected", String(index === this.#chosen));
      if (index === this.#chosen) line.scrollIntoView({ block: "nearest" });
    }
    const active = this.#list.children[this.#chosen];
    if (count && active) this.#words.setAttribute("aria-activedescendant", active.id);
    else this.#words.removeAttribute("aria-activedescendant");
  }
}

/** The line at the top: which task, how it stands, and what ends it. */

import { get, setText } from "./dom.js";
import { describe, marks } from "./words.js";

/** @typedef {import("./room.js").Room} Room */

export class Head {
  #name = get("name", HTMLElement);
  #parent = get("parent", HTMLAnchorElement);
  #state = get("state", HTMLElement);
  #pill = get("pill", HTMLElement);
  #link = get("link", HTMLElement);
  #complete = get("complete", HTMLButtonElement);
  #cancel = get("cancel", HTMLButtonElement);
  #keep = get("keep", HTMLButtonElement);
  /** Whether Cancel has asked, and waits for a second word. */
  #asks = false;
  #nameOf;

  /** @param {{complete: () => void, cancel: () => void, nameOf: (id: string) => string}} acts */
  constructor(acts) {
    this.#nameOf = acts.nameOf;
    this.#complete.addEventListener("click", () => acts.complete());
    this.#cancel.addEventListener("click", () => {
      const isSure = this.#asks;
      this.#ask(!isSure);
      if (isSure) acts.cancel();
    });
    this.#keep.addEventListener("click", () => this.#leave());
    for (const button of [this.#cancel, this.#keep]) {
      button.addEventListener("keydown", (event) => event.key === "Escape" && this.#leave());
    }
  }

  /** @param {Room} room */
  show(room) {
    const { standing, parent } = room;
    setText(this.#name, room.name);
    this.#parent.hidden = parent === null;
    if (parent !== null) {
      setText(this.#parent, `‹ ${this.#nameOf(parent) || "Parent task"}`);
      const hash = `#/t/${encodeURIComponent(parent)}`;
      if (this.#parent.getAttribute("href") !== hash) this.#parent.href = hash;
    }
    const words = standing ? [describe(standing.state, standing.subState), ...marks(standing.supervision)].join(" · ") : "Not started";
    setText(this.#state, words);
    this.#pill.dataset.state = standing?.state ?? "";
    this.#complete.disabled = this.#cancel.disabled = !room.isOpen;
    if (!room.isOpen) this.#ask(false);
    document.title = standing ? `${room.name} · ${describe(standing.state, standing.subState)}` : "tiny-harness";
  }

  /** Say that the harness cannot be reached; empty words: it can. @param {string} trouble */
  link(trouble) {
    setText(this.#link, trouble ? "Reconnecting …" : "");
    this.#link.title = trouble;
  }

  /** @param {boolean} asks */
  #ask(asks) {
    if (asks === this.#asks) return;
    this.#asks = asks;
    setText(this.#cancel, asks ? "Really cancel" : "Cancel");
    this.#keep.hidden = !asks;
  }

  #leave() {
    this.#ask(false);
    this.#cancel.focus();
  }
}

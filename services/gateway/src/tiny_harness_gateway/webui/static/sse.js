/** Server-sent events, put together from the pieces in which they arrive. */

/** @typedef {{id: string, data: string}} SseEvent */

export class SseReader {
  #buffer = "";
  #id = "";
  /** @type {string[]} */
  #data = [];

  /**
   * Take a piece in; gives the events that are whole now.
   * @param {string} text
   * @returns {SseEvent[]}
   */
  push(text) {
    const lines = (this.#buffer + text).split("\n");
    this.#buffer = /** @type {string} */ (lines.pop());
    return lines.flatMap((line) => this.#take(line.endsWith("\r") ? line.slice(0, -1) : line));
  }

  /** @param {string} line @returns {SseEvent[]} */
  #take(line) {
    if (line === "") {
      const data = this.#data;
      this.#data = [];
      return data.length ? [{ id: this.#id, data: data.join("\n") }] : [];
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    if (field === "id") this.#id = value;
    return [];
  }
}

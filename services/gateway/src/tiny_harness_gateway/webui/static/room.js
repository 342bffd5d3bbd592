/** An open conversation: nothing yet, or a task with all that was seen of it. No page, no network. */

import { isBusy, isEnded, noteWords } from "./words.js";

/** @typedef {import("./types.js").TaskEvent} TaskEvent */
/** @typedef {import("./types.js").Changed} Changed */
/** @typedef {import("./types.js").Message} Message */

/**
 * @typedef {object} Item One entry of the conversation; `key` names it for good.
 * @property {string} key
 * @property {"user" | "agent" | "note" | "command" | "refusal" | "tools"} kind
 * @property {string} text
 * @property {"" | "sending" | "queued" | "writing" | "cut"} mark
 * @property {string} [head] Of a command's answer: its name, and what became of it.
 * @property {import("./types.js").ToolUse[]} [tools]
 * @property {number} [startedAt] Of tools: when the step before was seen, in ms.
 * @property {number} [endedAt]
 * @property {{attempt: number, index: number}} [draft] Of words that are still being written.
 */

export class Room {
  /** @type {string | null} */
  taskId;
  /** Groups the first task with an earlier one. @type {string | null} */
  contextId = null;
  /** @type {import("./types.js").Standing & {at: string | null} | null} */
  standing = null;
  /** @type {import("./types.js").TaskData} */
  data = {};
  /** @type {Item[]} */
  items = [];
  /** Number of the last event seen. @type {number | null} */
  cursor = null;
  /** Number of the event before which nothing was read yet; 0: all is read. @type {number | null} */
  oldest = null;
  /** Where the reader was, and what they were writing. */
  scrollTop = -1;
  draft = "";
  /** What went wrong last, until something else happens. */
  trouble = "";
  /** The task that a message to this ended one has started. @type {string | null} */
  next = null;
  #keys = new Set();
  #turnSeenAt = 0;

  /** @param {string | null} taskId null: a new conversation. */
  constructor(taskId) {
    this.taskId = taskId;
  }

  get isOpen() {
    return this.standing !== null && !isEnded(this.standing.state);
  }

  get isBusy() {
    return this.standing !== null && isBusy(this.standing.state);
  }

  get hasEnded() {
    return this.standing !== null && isEnded(this.standing.state);
  }

  get name() {
    return this.data.name || this.taskId || "New conversation";
  }

  get parent() {
    return this.data.parents?.[0] ?? null;
  }

  /**
   * Take an event in.
   * @param {TaskEvent} event
   * @param {number} [now] In ms.
   */
  see(event, now = Date.now()) {
    if (event.kind === "delta") return this.#write(event);
    const seq = event.seq;
    if (event.kind !== "task" && seq !== null && this.cursor !== null && seq <= this.cursor) return;
    if (seq !== null) this.cursor = seq;
    if (seq !== null && this.oldest === null) this.oldest = seq;
    if (event.kind === "task") this.#show(event.view);
    else this.#change(event, now);
  }

  /** Put a message of this page at the end, before the harness has it. @param {string} id @param {string} text */
  send(id, text) {
    this.#put({ key: id, kind: "user", text, mark: "sending" });
  }

  /** Take back a message that could not be sent. @param {string} id */
  takeBack(id) {
    if (this.#find(id)?.mark !== "sending") return;
    this.items = this.items.filter((item) => item.key !== id);
    this.#keys.delete(id);
  }

  /**
   * Put older messages before all that is there; gives how many were new.
   * @param {Item[]} items Oldest first.
   */
  prepend(items) {
    const fresh = items.filter((item) => !this.#keys.has(item.key));
    for (const item of fresh) this.#keys.add(item.key);
    this.items = [...fresh, ...this.items];
    return fresh.length;
  }

  /** @param {import("./types.js").TaskView} view */
  #show(view) {
    this.taskId = view.id;
    this.contextId = view.contextId;
    this.standing = view;
    this.data = { ...this.data, ...view.data };
    for (const message of view.messages) this.#say(message, false);
    if (!isBusy(view.state)) this.#settle();
  }

  /** @param {Changed} event @param {number} now */
  #change(event, now) {
    this.taskId = event.taskId;
    this.contextId = event.contextId;
    // An event that tells nothing of the worker leaves what is known of it.
    const supervision = event.supervision ?? this.standing?.supervision ?? null;
    const question = questionAfter(this.standing?.question ?? null, event);
    this.standing = { ...event, question, supervision, at: event.at ?? this.standing?.at ?? null };
    if (event.data) this.data = { ...this.data, ...event.data };
    const isRefusal = event.kind === "replied" && event.refused.length > 0;
    if (event.message?.text) this.#say(event.message, isRefusal);
    if (event.kind === "received") this.#receive(event, now);
    if (event.kind === "stepped") this.#use(event, now);
    if (event.kind === "stepped" || event.kind === "replied") this.#turnSeenAt = now;
    this.#read(event.read);
    const endsTurn = event.inReplyTo.length > 0 && !event.message?.command;
    if (endsTurn && !event.question) this.#settle();
    if (isEnded(event.state)) this.#settle();
  }

  /** @param {Changed} event @param {number} now */
  #receive(event, now) {
    const item = event.message && this.#find(event.message.id);
    if (item && item.kind !== "note") item.mark = event.receivedAs === "queued" ? "queued" : "";
    if (event.receivedAs !== "turn") return;
    this.#turnSeenAt = now;
    // The turn reads all that waited.
    for (const other of this.items) if (other.mark === "queued") other.mark = "";
  }

  /** Fold the tools of steps without words in between under one entry. @param {Changed} event @param {number} now */
  #use(event, now) {
    const last = this.items.at(-1);
    if (last?.kind === "tools" && !event.message?.text) {
      last.tools = [...(last.tools ?? []), ...event.tools];
      last.endedAt = now;
      return;
    }
    const startedAt = this.#turnSeenAt || now;
    this.#put({ key: `tools-${event.seq}`, kind: "tools", text: "", mark: "", tools: event.tools, startedAt, endedAt: now });
  }

  /** @param {Message} message @param {boolean} isRefusal */
  #say(message, isRefusal) {
    const item = itemOf(message, isRefusal);
    const known = this.#find(item.key);
    if (!known) return this.#put(item);
    const isOurs = known.mark === "sending" || known.draft;
    Object.assign(known, item, { mark: isOurs ? "" : known.mark, draft: undefined });
    // What others said while it was on its way, or being written, stands before it.
    if (isOurs) this.items = [...this.items.filter((other) => other !== known), known];
  }

  /** @param {import("./types.js").Delta} delta */
  #write({ messageId, attempt, index, text }) {
    const known = this.#find(messageId);
    if (known && !known.draft) return;
    if (!known || !known.draft || attempt > known.draft.attempt) {
      if (known) Object.assign(known, { text, draft: { attempt, index } });
      else this.#put({ key: messageId, kind: "agent", text, mark: "writing", draft: { attempt, index } });
    } else if (attempt === known.draft.attempt && index > known.draft.index) {
      known.text += text;
      known.draft.index = index;
    }
  }

  /** @param {string[]} ids */
  #read(ids) {
    for (const id of ids) {
      const item = this.#find(id);
      if (item?.mark === "queued") item.mark = "";
    }
  }

  /** A turn is over: nothing waits for it, and what it left unfinished is in nobody's history. */
  #settle() {
    for (const item of this.items) {
      if (item.mark === "queued") item.mark = "";
      if (item.mark === "writing") item.mark = "cut";
    }
  }

  /** @param {string} key */
  #find(key) {
    return this.#keys.has(key) ? this.items.findLast((item) => item.key === key) : undefined;
  }

  /** @param {Item} item */
  #put(item) {
    this.#keys.add(item.key);
    this.items.push(item);
  }
}

/**
 * Give what a task waits to be told after an event; others than its own leave an open question as it is.
 * @param {import("./types.js").Question | null} before
 * @param {Changed} event
 */
function questionAfter(before, event) {
  const asked = event.question;
  const isOwn = event.kind === "replied" && !event.message?.command;
  if (!asked || !before || isOwn) return asked;
  const isSame = before.subState === asked.subState && (asked.requestId ?? before.requestId) === before.requestId;
  return isSame ? before : asked;
}

/**
 * Make the entry of a message.
 * @param {Message} message
 * @param {boolean} [isRefusal] Whether a policy says it, and not the agent.
 * @returns {Item}
 */
export function itemOf(message, isRefusal = false) {
  const { id, role, text, command } = message;
  if (command) {
    const outcome = command.outcome === "done" ? "" : ` ${command.outcome}`;
    return { key: id, kind: "command", text, mark: "", head: `/${command.name}${outcome}` };
  }
  if (isRefusal) return { key: id, kind: "refusal", text, mark: "", head: "message refused" };
  return { key: id, kind: role, text: role === "note" ? noteWords(text) : text, mark: "" };
}

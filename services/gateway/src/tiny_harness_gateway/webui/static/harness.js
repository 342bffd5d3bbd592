/** What a person can ask of the harness; calls and streams live through its restarts. Knows no page. */

import { decodeCaller, decodeEvent, decodeOffers, decodeTask, EVENT_TYPE, STREAM_KEY } from "./decode.js";
import { itemOf } from "./room.js";
import { Lost, Refused } from "./wire.js";
import { isEnded } from "./words.js";

/** @typedef {import("./types.js").Json} Json */
/** @typedef {import("./types.js").TaskEvent} TaskEvent */
/** @typedef {import("./types.js").TaskView} TaskView */

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 3_000;
/** Messages that a task is opened with. */
const FIRST_MESSAGES = 200;
/** Events that are read at a time of what was said before: about 200 messages. */
const PAGE = 400;

/** @typedef {{links: (words: string) => void}} Listener Is told that the harness cannot be reached, and empty words once it can. */

export class Harness {
  #wire;
  #listener;
  #pause;

  /**
   * @param {import("./wire.js").Wire} wire
   * @param {Listener} listener
   * @param {(ms: number) => Promise<void>} [pause]
   */
  constructor(wire, listener, pause = (ms) => new Promise((done) => setTimeout(done, ms))) {
    this.#wire = wire;
    this.#listener = listener;
    this.#pause = pause;
  }

  /** Show the credentials; gives who the harness says that we are, and the commands that it offers. */
  async signIn() {
    const offers = decodeOffers(await this.#healed(() => this.#wire.card()));
    const caller = decodeCaller(await this.#healed(() => this.#wire.call("GetExtendedAgentCard")));
    return { caller, offers };
  }

  /** Read the commands anew, as after a restart of the harness. */
  async offers() {
    return decodeOffers(await this.#healed(() => this.#wire.card()));
  }

  /**
   * List tasks, newest change first, without their messages.
   * @param {string} [after] The page before's.
   * @returns {Promise<{tasks: TaskView[], after: string}>}
   */
  async tasks(after = "") {
    const params = { pageSize: 50, historyLength: 0, ...(after ? { pageToken: after } : {}) };
    const found = await this.#healed(() => this.#wire.call("ListTasks", params));
    /** @type {(TaskView | null)[]} */
    const views = (found.tasks ?? []).map(decodeTask);
    return { tasks: views.filter((view) => view !== null), after: found.nextPageToken ?? "" };
  }

  /**
   * Get a task with its last messages.
   * @param {string} id
   * @param {number} [messages]
   */
  async task(id, messages = FIRST_MESSAGES) {
    const view = decodeTask(await this.#healed(() => this.#wire.call("GetTask", { id, historyLength: messages })));
    if (!view) throw new Refused("The task is in a state that this page does not know.");
    return view;
  }

  /**
   * Hand a message over; gives the task once the harness has it. The same message twice counts once.
   * @param {Json} message
   */
  async send(message) {
    const params = { message, configuration: { returnImmediately: true } };
    const view = decodeTask((await this.#healed(() => this.#wire.call("SendMessage", params))).task ?? {});
    if (!view) throw new Refused("The harness answered with no task.");
    return view;
  }

  /** @param {string} id */
  async cancel(id) {
    await this.#healed(() => this.#wire.call("CancelTask", { id }));
  }

  /**
   * Tell all that happens to a task until it has ended or the signal ends it.
   * @param {string} id
   * @param {number | null} cursor The last event known.
   * @param {AbortSignal} signal
   * @param {(event: TaskEvent) => void} tell
   */
  async follow(id, cursor, signal, tell) {
    const healing = new Healing(this.#pause);
    let known = cursor;
    while (!signal.aborted) {
      try {
        let isSilent = true;
        for await (const payload of this.#wire.stream("SubscribeToTask", { id }, signal, known)) {
          this.#listener.links("");
          healing.worked();
          isSilent = false;
          const event = decodeEvent(payload);
          if (!event) continue;
          if (event.kind !== "delta" && event.seq !== null) known = event.seq;
          tell(event);
          if (hasEnded(event)) return;
        }
        if (isSilent && (await this.#tellEnd(id, tell))) return;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Refused && error.code === "task_ended") return void (await this.#tellEnd(id, tell));
        if (!(error instanceof Lost)) throw error;
        this.#listener.links(error.message);
        await healing.pause(error);
        continue;
      }
      await healing.pause(new Lost("The harness closed the stream."));
    }
  }

  /**
   * Read what was said before the events that are known, one page of it.
   * @param {string} id
   * @param {number} before The number of the first event that is known.
   * @returns {Promise<{items: import("./room.js").Item[], oldest: number}>}
   */
  async older(id, before) {
    const start = Math.max(0, before - PAGE);
    const { signal } = new AbortController();
    /** @type {import("./room.js").Item[]} */
    const items = [];
    await this.#healed(async () => {
      items.length = 0;
      for await (const payload of this.#wire.stream("SubscribeToTask", { id }, signal, start)) {
        const event = decodeEvent(payload);
        if (!event || event.kind === "delta") continue;
        items.push(...itemsOf(event));
        if (event.seq === null || event.seq >= before) break;
      }
    });
    return { items, oldest: start };
  }

  /** Tell a task as it is, if it has ended. @param {string} id @param {(event: TaskEvent) => void} tell */
  async #tellEnd(id, tell) {
    const view = await this.task(id);
    if (isEnded(view.state)) tell({ kind: "task", view, seq: view.seq });
    return isEnded(view.state);
  }

  /**
   * Try until the harness answers; refusals pass.
   * @template T
   * @param {() => Promise<T>} call
   * @returns {Promise<T>}
   */
  async #healed(call) {
    const healing = new Healing(this.#pause);
    for (;;) {
      try {
        const answer = await call();
        this.#listener.links("");
        return answer;
      } catch (error) {
        if (!(error instanceof Lost)) throw error;
        this.#listener.links(error.message);
        await healing.pause(error);
      }
    }
  }
}

/** Paces attempts: longer each time, never twice the same. */
class Healing {
  #attempt = 0;
  #pause;

  /** @param {(ms: number) => Promise<void>} pause */
  constructor(pause) {
    this.#pause = pause;
  }

  worked() {
    this.#attempt = 0;
  }

  /** @param {Lost} error */
  async pause(error) {
    const longest = Math.min(FIRST_PAUSE_MS * 2 ** this.#attempt, LONGEST_PAUSE_MS);
    this.#attempt += 1;
    await this.#pause(Math.max(longest * (0.5 + Math.random() / 2), error.retryAfterS * 1_000));
  }
}

/** @param {TaskEvent} event */
const hasEnded = (event) =>
  event.kind !== "delta" && isEnded(event.kind === "task" ? event.view.state : event.state);

/** @param {Exclude<TaskEvent, import("./types.js").Delta>} event @returns {import("./room.js").Item[]} */
function itemsOf(event) {
  if (event.kind === "task") return event.view.messages.map((message) => itemOf(message));
  return event.message?.text ? [itemOf(event.message, event.refused.length > 0)] : [];
}

/**
 * Make a message of words. A first message always carries an idempotency key: its own id.
 * @param {{id: string, text: string, taskId: string | null, contextId: string | null}} said
 * @returns {Json}
 */
export function words({ id, text, taskId, contextId }) {
  const message = addressed(id, [{ text: text.toWellFormed?.() ?? text }], taskId, contextId);
  return taskId ? message : { ...message, metadata: { [STREAM_KEY]: { idempotency_key: id } } };
}

/**
 * Make a message that acts on a task: `complete`, `interrupt`, `acknowledge` or `answer`.
 * @param {string} action
 * @param {string} taskId
 * @param {{request_id?: string, value?: string, reason?: string}} [more]
 */
export const control = (action, taskId, more = {}) =>
  addressed(newId(), [{ data: { kind: "control", action, ...more }, mediaType: EVENT_TYPE }], taskId, null);

/** Make a message that changes a task's data. @param {Json} payload @param {string} taskId */
export const patch = (payload, taskId) =>
  addressed(newId(), [{ data: { kind: "task", payload }, mediaType: EVENT_TYPE }], taskId, null);

/** @param {string} id @param {Json[]} parts @param {string | null} taskId @param {string | null} contextId @returns {Json} */
function addressed(id, parts, taskId, contextId) {
  const to = taskId ? { taskId } : contextId ? { contextId } : {};
  return { messageId: id, role: "ROLE_USER", parts, ...to };
}

/** Pages on other names of this machine are no secure context, and have no `randomUUID`. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

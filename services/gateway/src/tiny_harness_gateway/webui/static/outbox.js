/** Messages on their way from the composer to the harness, one after the other, in the order of writing. No page. */

import { control, newId, words } from "./harness.js";
import { chosen } from "./question.js";

/** @typedef {import("./room.js").Room} Room */
/** @typedef {{sent: (room: Room) => void, refused: (room: Room, text: string, error: Error) => void}} Sender */

export class Outbox {
  #harness;
  #sender;
  /** @type {Promise<void>} */
  #last = Promise.resolve();
  /** Ids of texts that were refused or cut off: they may be in all the same, so the id is used again. @type {Map<string, string>} */
  #unsent = new Map();
  /** Messages that the harness does not have yet. */
  waiting = 0;

  /** @param {import("./harness.js").Harness} harness @param {Sender} sender */
  constructor(harness, sender) {
    this.#harness = harness;
    this.#sender = sender;
  }

  /** @param {Room} room @param {string} text */
  post(room, text) {
    const id = this.#unsent.get(text) ?? newId();
    this.#unsent.delete(text);
    room.send(id, text);
    this.waiting += 1;
    this.#last = this.#last.then(() => this.#deliver(room, id, text));
    return this.#last;
  }

  /** @param {Room} room @param {string} id @param {string} text */
  async #deliver(room, id, text) {
    // A task that has ended takes nothing more: the message starts a new one in the same context.
    const taskId = room.hasEnded ? null : room.taskId;
    const choice = chosen(room.standing?.question, text);
    const requestId = room.standing?.question?.requestId ?? "";
    const message =
      choice !== null && taskId
        ? { ...control("answer", taskId, { request_id: requestId, value: choice }), messageId: id }
        : words({ id, text, taskId, contextId: room.contextId });
    try {
      const view = await this.#harness.send(message);
      if (choice !== null && taskId) room.takeBack(id);
      if (taskId === null) this.#start(room, id, view);
      this.#sender.sent(room);
    } catch (error) {
      this.#unsent.set(text, id);
      room.takeBack(id);
      this.#sender.refused(room, text, error instanceof Error ? error : new Error(String(error)));
    } finally {
      this.waiting -= 1;
    }
  }

  /** The message started a task. @param {Room} room @param {string} id @param {import("./types.js").TaskView} view */
  #start(room, id, view) {
    if (room.taskId !== null && room.taskId !== view.id) {
      room.takeBack(id); // it stands in the new task's own room
      room.next = view.id;
      return;
    }
    room.see({ kind: "task", view, seq: view.seq });
  }
}

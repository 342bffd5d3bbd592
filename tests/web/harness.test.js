import assert from "node:assert/strict";
import { test } from "node:test";

import { control, Harness, words } from "../../services/gateway/src/tiny_harness_gateway/webui/static/harness.js";
import { Outbox } from "../../services/gateway/src/tiny_harness_gateway/webui/static/outbox.js";
import { Room } from "../../services/gateway/src/tiny_harness_gateway/webui/static/room.js";
import { Lost, Refused } from "../../services/gateway/src/tiny_harness_gateway/webui/static/wire.js";
import { agent, task, update, user } from "./said.js";

/** @typedef {Record<string, any>} Json */

/** A harness on the other side: each call and stream takes the next thing that was scripted for it. */
class Other {
  /** @type {Json[]} */
  asked = [];
  /** @type {string[]} */
  links = [];

  /** @param {Record<string, unknown[]>} script What each method answers, in turn; errors are thrown. */
  constructor(script) {
    this.script = script;
  }

  /** @param {string} method */
  #next(method) {
    const answer = this.script[method]?.shift();
    if (answer instanceof Error) throw answer;
    return /** @type {Json} */ (answer ?? {});
  }

  /** @param {string} method @param {Json} [params] */
  async call(method, params) {
    this.asked.push({ method, ...params });
    return this.#next(method);
  }

  async card() {
    return this.#next("card");
  }

  /** @param {string} method @param {Json} params @param {AbortSignal} _signal @param {number | null} [cursor] */
  async *stream(method, params, _signal, cursor) {
    this.asked.push({ method, cursor, ...params });
    for (const payload of /** @type {any} */ (this.#next(method))) {
      if (payload instanceof Error) throw payload;
      yield payload;
    }
  }

  harness() {
    const listener = { links: (/** @type {string} */ told) => void this.links.push(told) };
    return new Harness(/** @type {any} */ (this), listener, () => Promise.resolve());
  }
}

const quiet = () => new AbortController().signal;

test("a stream that breaks goes on after the last event, and says so", async () => {
  const other = new Other({
    SubscribeToTask: [
      [update("WORKING", { seq: 2, received: user("a"), received_as: "turn" }), new Lost("gone")],
      new Lost("still gone"),
      [update("COMPLETED", { seq: 3 })],
    ],
  });
  /** @type {any[]} */
  const seen = [];
  await other.harness().follow("t1", 1, quiet(), (event) => seen.push(event));
  assert.deepEqual(seen.map((event) => event.seq), [2, 3]);
  assert.deepEqual(other.asked.map(({ cursor }) => cursor), [1, 2, 2]);
  assert.deepEqual([other.links.at(1), other.links.at(-1)], ["gone", ""]);
});

test("a task that has ended meanwhile is shown as it is", async () => {
  const other = new Other({
    SubscribeToTask: [new Refused("ended", "task_ended")],
    GetTask: [task("CANCELED", [])],
  });
  /** @type {any[]} */
  const seen = [];
  await other.harness().follow("t1", 5, quiet(), (event) => seen.push(event));
  assert.equal(seen[0].view.state, "TASK_STATE_CANCELED");
});

test("a refusal ends following, and is told", async () => {
  const other = new Other({ SubscribeToTask: [new Refused("no such task", "task_not_found")] });
  await assert.rejects(other.harness().follow("t1", null, quiet(), () => undefined), /no such task/);
});

test("older messages are read from a cursor up to the first event that is known", async () => {
  const past = [1, 2].map((n) => update("WORKING", { seq: 600 + n, received: user(`m${n}`), received_as: "turn" }));
  const other = new Other({ SubscribeToTask: [[...past, update("WORKING", { seq: 1_000 }), update("WORKING", { seq: 1_001 }, agent("new"))]] });
  const { items, oldest } = await other.harness().older("t1", 1_000);
  assert.deepEqual(items.map(({ text }) => text), ["m1", "m2"]);
  assert.deepEqual([oldest, other.asked[0]?.cursor], [600, 600]);
});

test("a first message carries its id as idempotency key, a control is the only part of its message", () => {
  const first = words({ id: "m1", text: "hi", taskId: null, contextId: "c1" });
  assert.deepEqual(Object.values(first.metadata), [{ idempotency_key: "m1" }]);
  assert.equal(first.contextId, "c1");
  assert.deepEqual(control("answer", "t1", { request_id: "r", value: "yes" }).parts[0].data, {
    kind: "control", action: "answer", request_id: "r", value: "yes",
  });
});

/** @param {Other} other */
function outboxOf(other) {
  /** @type {string[]} */
  const told = [];
  const outbox = new Outbox(other.harness(), {
    sent: () => void told.push("sent"),
    refused: (_room, text, error) => void told.push(`${text}: ${error.message}`),
  });
  return { outbox, told };
}

test("a message is tried until the harness has it, always as the same message", async () => {
  const other = new Other({ SendMessage: [new Lost("gone"), new Lost("gone"), { task: task("WORKING", [user("hi")]) }] });
  const { outbox, told } = outboxOf(other);
  const room = new Room(null);
  await outbox.post(room, "hi");
  assert.deepEqual(told, ["sent"]);
  assert.equal(new Set(other.asked.map(({ message }) => message.messageId)).size, 1);
  assert.equal(room.taskId, "t1");
});

test("messages go out in the order of writing, the second to the task that the first one started", async () => {
  const other = new Other({ SendMessage: [{ task: task("WORKING", []) }, { task: task("WORKING", []) }] });
  const { outbox } = outboxOf(other);
  const room = new Room(null);
  void outbox.post(room, "one");
  await outbox.post(room, "two");
  assert.deepEqual(other.asked.map(({ message }) => [message.parts[0].text, message.taskId]), [["one", undefined], ["two", "t1"]]);
});

test("a refused message is given back, and the same words keep their id", async () => {
  const other = new Other({ SendMessage: [new Refused("full"), { task: task("WORKING", []) }] });
  const { outbox, told } = outboxOf(other);
  const room = new Room("t1");
  await outbox.post(room, "hi");
  assert.deepEqual([told, room.items], [["hi: full"], []]);
  await outbox.post(room, "hi");
  assert.equal(new Set(other.asked.map(({ message }) => message.messageId)).size, 1);
});

test("a message to an ended task starts a new one in its context", async () => {
  const other = new Other({ SendMessage: [{ task: { ...task("WORKING", []), id: "t2" } }] });
  const { outbox } = outboxOf(other);
  const room = new Room("t1");
  room.see({ kind: "task", view: /** @type {any} */ ({ id: "t1", contextId: "c1", state: "TASK_STATE_COMPLETED", data: {}, messages: [] }), seq: 4 });
  await outbox.post(room, "again");
  assert.deepEqual([other.asked[0]?.message.taskId, other.asked[0]?.message.contextId], [undefined, "c1"]);
  assert.deepEqual([room.next, room.taskId, room.items.length], ["t2", "t1", 0]);
});

test("the choice of a question is an answer, other words are a message", async () => {
  const other = new Other({ SendMessage: [{ task: task("WORKING", []) }, { task: task("WORKING", []) }] });
  const { outbox } = outboxOf(other);
  const room = new Room("t1");
  const question = { subState: "awaiting-approval", requestId: "r1", choices: ["approve", "refuse"] };
  room.standing = { state: "TASK_STATE_INPUT_REQUIRED", subState: "awaiting-approval", question, supervision: null, at: null };
  await outbox.post(room, " Approve ");
  await outbox.post(room, "rather not");
  assert.equal(other.asked[0]?.message.parts[0].data.value, "approve");
  assert.equal(other.asked[1]?.message.parts[0].text, "rather not");
});

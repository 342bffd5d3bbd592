import assert from "node:assert/strict";
import { test } from "node:test";

import { decodeEvent } from "../../services/gateway/src/tiny_harness_gateway/webui/static/decode.js";
import { itemOf, Room } from "../../services/gateway/src/tiny_harness_gateway/webui/static/room.js";
import { agent, delta, task, update, user } from "./said.js";

/** @param {...Record<string, any>} payloads */
function roomOf(...payloads) {
  const room = new Room("t1");
  for (const payload of payloads) tell(room, payload);
  return room;
}

/** @param {Room} room @param {Record<string, any>} payload @param {number} [now] */
function tell(room, payload, now = 0) {
  const event = decodeEvent(payload);
  assert.ok(event);
  room.see(event, now);
}

/** @param {Room} room */
const told = (room) => room.items.map(({ kind, text, mark }) => `${kind}:${text}${mark && `(${mark})`}`);

test("a task is shown, and what happens to it after that comes below, once", () => {
  const reply = update("INPUT_REQUIRED", { seq: 3, in_reply_to: ["u-b"] }, agent("B"));
  const room = roomOf(
    { task: task("INPUT_REQUIRED", [user("a"), agent("A")]) },
    update("WORKING", { seq: 2, received: user("b"), received_as: "turn" }),
    reply,
    reply,
  );
  assert.deepEqual(told(room), ["user:a", "agent:A", "user:b", "agent:B"]);
  assert.equal(room.cursor, 3);
  assert.equal(room.oldest, 1);
});

test("a message of this page is there at once, and once when it comes back", () => {
  const room = roomOf({ task: task("WORKING", []) });
  room.send("u-hi", "hi");
  assert.deepEqual(told(room), ["user:hi(sending)"]);
  tell(room, update("WORKING", { seq: 2, received: user("hi"), received_as: "queued" }));
  assert.deepEqual(told(room), ["user:hi(queued)"]);
  tell(room, update("WORKING", { seq: 3, received: user("x"), received_as: "turn" }));
  assert.deepEqual(told(room), ["user:hi", "user:x"]);
});

test("what others said while a message was on its way stands before it", () => {
  const room = roomOf({ task: task("WORKING", []) });
  room.send("u-mine", "mine");
  tell(room, update("WORKING", { seq: 2, received: user("theirs"), received_as: "turn" }));
  tell(room, update("WORKING", { seq: 3, received: user("mine"), received_as: "queued" }));
  assert.deepEqual(told(room), ["user:theirs", "user:mine(queued)"]);
});

test("a message that could not be sent is taken back, but never one that came back", () => {
  const room = roomOf({ task: task("WORKING", []) });
  room.send("u-a", "a");
  room.takeBack("u-a");
  assert.deepEqual(told(room), []);
  room.send("u-b", "b");
  tell(room, update("WORKING", { seq: 2, received: user("b"), received_as: "turn" }));
  room.takeBack("u-b");
  assert.deepEqual(told(room), ["user:b"]);
});

test("a reply grows, another attempt replaces it, and its end takes its place", () => {
  const room = roomOf({ task: task("WORKING", []) }, delta("Hel", 0), delta("lo", 1), delta("lo", 1));
  assert.deepEqual(told(room), ["agent:Hello(writing)"]);
  tell(room, delta("Good", 0, 2));
  tell(room, delta("late", 2, 1));
  assert.deepEqual(told(room), ["agent:Good(writing)"]);
  const key = room.items[0]?.key;
  tell(room, update("INPUT_REQUIRED", { seq: 2, in_reply_to: ["u"] }, agent("Good day", { messageId: "a-1" })));
  assert.deepEqual(told(room), ["agent:Good day"]);
  assert.equal(room.items[0]?.key, key, "the same entry, so that nothing flickers");
  tell(room, delta("more", 9, 9));
  assert.deepEqual(told(room), ["agent:Good day"]);
});

test("what a cut turn left unfinished stays, marked", () => {
  const room = roomOf({ task: task("WORKING", []) }, delta("Half", 0));
  tell(room, update("INPUT_REQUIRED", { seq: 2, in_reply_to: ["u"] }));
  assert.deepEqual(told(room), ["agent:Half(cut)"]);
});

test("tools fold under one entry until the agent says something", () => {
  const use = (/** @type {number} */ seq, /** @type {string} */ name) =>
    update("WORKING", { seq, step: seq, tool_calls: [{ call_id: String(seq), name }] });
  const room = roomOf({ task: task("WORKING", []) });
  tell(room, use(2, "a"), 1_000);
  tell(room, use(3, "b"), 4_000);
  const step = use(4, "c");
  step.statusUpdate.status.message = agent("So far");
  tell(room, step, 5_000);
  assert.deepEqual(told(room), ["tools:", "agent:So far", "tools:"]);
  assert.deepEqual(room.items[0]?.tools?.map(({ name }) => name), ["a", "b"]);
  assert.equal((room.items[0]?.endedAt ?? 0) - (room.items[0]?.startedAt ?? 0), 3_000);
});

test("older messages come before, without those that are there", () => {
  const room = roomOf({ task: task("INPUT_REQUIRED", [user("c")]) });
  const older = [user("a"), user("b"), user("c")].map((message) =>
    itemOf({ id: message.messageId, role: "user", text: message.parts[0].text, command: null }),
  );
  assert.equal(room.prepend(older), 2);
  assert.equal(room.prepend(older), 0);
  assert.deepEqual(told(room), ["user:a", "user:b", "user:c"]);
});

test("a change tells only what changed of the task's data", () => {
  const room = roomOf({ task: task("WORKING", [], { task: { name: "Job", model: "m" } }) });
  tell(room, update("WORKING", { seq: 2 }, null, { task: { name: "New job" } }));
  assert.deepEqual([room.data.name, room.data.model], ["New job", "m"]);
});

test("how a task stands with its worker is kept when an event does not tell it", () => {
  const room = roomOf({ task: task("WORKING", [], { supervision: { worker: "bob", reminders: 2 } }) });
  tell(room, update("WORKING", { seq: 2, received: user("x"), received_as: "turn" }));
  assert.equal(room.standing?.supervision?.reminders, 2);
});

test("a command's answer and a policy's refusal are the harness's words", () => {
  const room = roomOf(
    { task: task("WORKING", []) },
    update("WORKING", { seq: 2, in_reply_to: ["u"] }, agent("m"), { commands: { name: "model", outcome: "failed" } }),
    update("INPUT_REQUIRED", { seq: 3, in_reply_to: ["u"], refused: ["u"] }, agent("no")),
  );
  assert.deepEqual(room.items.map(({ kind, head }) => [kind, head]), [["command", "/model failed"], ["refusal", "message refused"]]);
});

test("10,000 messages and a reply that grows are taken in quickly", () => {
  const room = roomOf({ task: task("WORKING", Array.from({ length: 10_000 }, (_, n) => user(String(n)))) });
  const started = performance.now();
  for (let index = 0; index < 2_000; index += 1) tell(room, delta("word ", index));
  assert.equal(room.items.at(-1)?.text.length, 10_000);
  assert.ok(performance.now() - started < 5_000);
});

test("an open question stays as it is while other things happen, and another one takes its place", () => {
  const asks = { status: { sub_state: "awaiting-answer", choices: ["card", "voucher"] } };
  const plain = { status: { sub_state: "awaiting-answer" } };
  const room = roomOf(
    { task: task("WORKING", []) },
    update("INPUT_REQUIRED", { seq: 2, in_reply_to: ["u"] }, agent("Where to?"), asks),
    update("INPUT_REQUIRED", { seq: 3 }, null, plain),
    update("INPUT_REQUIRED", { seq: 4, in_reply_to: ["c"] }, agent("fine"), { ...plain, commands: { name: "status", outcome: "done" } }),
  );
  assert.deepEqual(room.standing?.question?.choices, ["card", "voucher"]);
  tell(room, update("INPUT_REQUIRED", { seq: 5, in_reply_to: ["u"] }, agent("And why?"), plain));
  assert.deepEqual(room.standing?.question?.choices, []);
  tell(room, update("WORKING", { seq: 6 }));
  assert.equal(room.standing?.question, null);
});

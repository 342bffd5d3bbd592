import assert from "node:assert/strict";
import { test } from "node:test";

import { decodeCaller, decodeEvent, decodeOffers, decodeTask } from "../../services/gateway/src/tiny_harness_gateway/webui/static/decode.js";
import { agent, delta, metadata, task, update, user } from "./said.js";

const EXTENSIONS = "https://madarauchiha-314.github.io/tiny-harness/a2a/ext";

/** @param {Record<string, any>} payload @returns {any} */
const read = (payload) => decodeEvent(payload);

test("a task is read with its messages, its data and why it waits", () => {
  const extensions = {
    status: { sub_state: "awaiting-approval", request_id: "r1", choices: ["approve", "refuse"] },
    task: { name: "Refund", parent_tasks: ["p"], sub_tasks: [], model: "m", reasoning_effort: "high" },
    supervision: { worker: "bob", stalled: true },
  };
  const view = decodeTask(task("INPUT_REQUIRED", [user("hi"), agent("ok?")], extensions));
  assert.equal(view?.state, "TASK_STATE_INPUT_REQUIRED");
  assert.deepEqual(view?.messages.map(({ role, text }) => [role, text]), [["user", "hi"], ["agent", "ok?"]]);
  assert.deepEqual(view?.question, { subState: "awaiting-approval", requestId: "r1", choices: ["approve", "refuse"] });
  assert.deepEqual(view?.data, { name: "Refund", parents: ["p"], subTasks: [], model: "m", effort: "high" });
  assert.equal(view?.supervision?.worker, "bob");
  assert.equal(view?.seq, 1);
});

test("the status's own message is there once, also if the history has it", () => {
  const said = agent("done");
  const body = task("COMPLETED", [said]);
  body.status.message = said;
  assert.equal(decodeTask(body)?.messages.length, 1);
  assert.equal(decodeTask({ ...body, history: [] })?.messages.length, 1);
});

test("an unknown state or kind of event is left out, an unknown sub-state is no question", () => {
  assert.equal(decodeTask({ ...task("WORKING", []), status: { state: "TASK_STATE_DREAMING" } }), null);
  assert.equal(decodeEvent({ artifactUpdate: {} }), null);
  assert.equal(read(update("INPUT_REQUIRED", { seq: 2 }, null, { status: { sub_state: "awaiting-moon" } })).question, null);
});

test("updates are told apart by what they carry", () => {
  const kinds = [
    [update("WORKING", { seq: 2, received: user("a"), received_as: "queued" }), "received"],
    [update("COMPLETED", { seq: 3, received: user(""), received_as: "control" }), "state"],
    [update("WORKING", { seq: 4, step: 1, tool_calls: [{ call_id: "1", name: "orders/look" }] }), "stepped"],
    [update("INPUT_REQUIRED", { seq: 5, in_reply_to: ["u-a"] }, agent("b")), "replied"],
    [delta("x", 0), "delta"],
  ];
  for (const [payload, kind] of kinds) assert.equal(read(/** @type {any} */ (payload)).kind, kind);
});

test("the answer to a command says which one, wherever the harness put it", () => {
  const marked = metadata({ commands: { name: "status", outcome: "done" } });
  const onEvent = read(update("WORKING", { seq: 2 }, agent("fine"), { commands: { name: "model", outcome: "refused" } }));
  assert.deepEqual(onEvent.message.command, { name: "model", outcome: "refused" });
  const view = decodeTask(task("WORKING", [agent("fine", { metadata: marked })]));
  assert.deepEqual(view?.messages[0]?.command, { name: "status", outcome: "done" });
});

test("a note to the agent is not the agent's word", () => {
  const note = agent("sub-task ended", { metadata: metadata({ commands: { literal: true } }) });
  assert.equal(decodeTask(task("WORKING", [note]))?.messages[0]?.role, "note");
});

test("parts without text and nonsense in metadata do no harm", () => {
  const odd = { messageId: "m", role: "ROLE_USER", parts: [{ data: {} }, { text: "a" }, { raw: "eA==" }, { text: "b" }] };
  assert.equal(decodeTask(task("WORKING", [odd]))?.messages[0]?.text, "a\n\nb");
  assert.equal(read(update("WORKING", { seq: "x", read: 7, tool_calls: "no", in_reply_to: [1, "m"] })).inReplyTo[0], "m");
});

test("the card's commands are offered, and those that nobody could type are not", () => {
  const commands = [{ name: "model", description: "d", argument_hint: "[name]" }, { name: "a b" }, { name: 7 }, null];
  const card = { capabilities: { extensions: [{ uri: `${EXTENSIONS}/commands/v1`, params: { commands } }] } };
  assert.deepEqual(decodeOffers(card), [{ name: "model", description: "d", argumentHint: "[name]" }]);
  assert.deepEqual(decodeOffers({}), []);
});

test("an extended card says whom it is for", () => {
  const card = { capabilities: { extensions: [{ uri: `${EXTENSIONS}/task/v1`, params: { caller: { id: "ann" } } }] } };
  assert.equal(decodeCaller(card), "ann");
  assert.equal(decodeCaller({}), "");
});

import assert from "node:assert/strict";
import { test } from "node:test";

import { fitting, written } from "../../services/gateway/src/tiny_harness_gateway/webui/static/offers.js";
import { openSession } from "../../services/gateway/src/tiny_harness_gateway/webui/static/session.js";
import { describe, marks, moment, noteWords, toolWords, usageWords } from "../../services/gateway/src/tiny_harness_gateway/webui/static/words.js";

test("state and sub-state are put into words, an unknown sub-state is not", () => {
  assert.equal(describe("TASK_STATE_INPUT_REQUIRED", "awaiting-next-message"), "Input required · Your turn");
  assert.equal(describe("TASK_STATE_INPUT_REQUIRED", "awaiting-moon"), "Input required");
  assert.equal(describe("TASK_STATE_WORKING", "awaiting-answer"), "Working");
});

test("what is worth a look of a supervised task is said", () => {
  assert.deepEqual(marks({ worker: "b", queue_position: 2, reminders: 3, stalled: true }), ["place 2 in the queue", "reminded 3 times", "stalled"]);
  assert.deepEqual(marks({ worker: "b", warnings: 1, expired: true }), ["expired"]);
  assert.deepEqual(marks(null), []);
});

test("usage, tools and moments are short", () => {
  assert.equal(usageWords({ calls: 1, input_tokens: 12_000, output_tokens: 345, cost: "0.021" }), "12.3k tokens · cost 0.0210");
  assert.equal(usageWords(null), "");
  assert.equal(toolWords([{ name: "s/a", is_error: false }, { name: "s/a", is_error: false }, { name: "b", is_error: true }]), "a ×2, b ✗");
  assert.match(moment("2026-12-01T10:00:00Z", new Date("2026-12-01T11:00:00Z")), /\d\d:\d\d/);
  assert.equal(moment("nonsense"), "");
});

test("a note is told without what only models need, and cut short", () => {
  assert.equal(noteWords("Sub-task 1 is COMPLETED.\n\n<result>\nfine\n</result>"), "Sub-task 1 is COMPLETED.\nfine");
  assert.equal(noteWords("a".repeat(600)).length, 502);
});

test("commands are offered while their name is being written", () => {
  const offers = [{ name: "model", description: "", argumentHint: "[name]" }, { name: "status", description: "", argumentHint: "" }];
  assert.deepEqual(fitting(offers, "/").length, 2);
  assert.deepEqual(fitting(offers, "/MO").map(({ name }) => name), ["model"]);
  for (const text of ["", "model", "/model ", "/model x", "/usr/bin", " /model"]) assert.deepEqual(fitting(offers, text), []);
  assert.deepEqual(offers.map(written), ["/model ", "/status"]);
});

test("a token in the address is kept for the tab, and out of sight at once", () => {
  /** @type {Map<string, string>} */
  const kept = new Map();
  const storage = /** @type {any} */ ({ getItem: (/** @type {string} */ key) => kept.get(key) ?? null, setItem: (/** @type {string} */ key, /** @type {string} */ value) => kept.set(key, value) });
  /** @type {string[]} */
  const replaced = [];
  const history = /** @type {any} */ ({ replaceState: (/** @type {any} */ _state, /** @type {any} */ _title, /** @type {string} */ url) => replaced.push(url) });
  const location = /** @type {any} */ ({ hash: "#token=a%2Fb", pathname: "/ui/", search: "" });
  assert.deepEqual(openSession(location, history, storage), { token: "a/b", participant: "" });
  assert.deepEqual(replaced, ["/ui/#/"]);
  assert.deepEqual(openSession({ ...location, hash: "#/t/1" }, history, storage), { token: "a/b", participant: "" });
});

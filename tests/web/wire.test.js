import assert from "node:assert/strict";
import { test } from "node:test";

import { SseReader } from "../../services/gateway/src/tiny_harness_gateway/webui/static/sse.js";
import { Lost, Refused, SignInWanted, Wire } from "../../services/gateway/src/tiny_harness_gateway/webui/static/wire.js";

const WHO = { token: "secret", participant: "" };

/**
 * A fetch that answers what it is told, and keeps what it was asked.
 * @param {...(() => Response)} answers
 */
function answering(...answers) {
  /** @type {{url: string, init: RequestInit}[]} */
  const asked = [];
  const fetcher = async (/** @type {any} */ url, /** @type {any} */ init) => {
    asked.push({ url, init });
    const answer = answers.shift();
    if (!answer) throw new TypeError("fetch failed");
    return answer();
  };
  return { asked, fetcher: /** @type {typeof fetch} */ (fetcher) };
}

/** @param {unknown} body @param {number} [status] @param {Record<string, string>} [headers] */
const json = (body, status = 200, headers = {}) => () =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } });

/** @param {string} text */
const events = (text) => () => new Response(text, { headers: { "content-type": "text/event-stream; charset=utf-8" } });

test("events are put together however they are cut", () => {
  const text = "retry: 5\nid: 1\ndata: {\"a\":1}\n\n: ping\n\nid: 2\r\ndata: x\r\ndata:  y\r\n\r\ndata: cut";
  const whole = [{ id: "1", data: '{"a":1}' }, { id: "2", data: "x\n y" }];
  for (const size of [1, 2, 7, text.length]) {
    const reader = new SseReader();
    const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, n) => text.slice(n * size, (n + 1) * size));
    assert.deepEqual(pieces.flatMap((piece) => reader.push(piece)), whole);
  }
});

test("the card's address is taken relative to the page", async () => {
  const card = { supportedInterfaces: [{ url: "https://other.example/base/rpc?x=1", protocolBinding: "JSONRPC" }] };
  const { asked, fetcher } = answering(json(card), json({ result: { ok: true } }));
  const wire = new Wire("http://here:1", WHO, fetcher);
  await wire.card();
  assert.deepEqual(await wire.call("GetTask", { id: "t" }), { ok: true });
  assert.deepEqual(asked.map(({ url }) => url), ["http://here:1/.well-known/agent-card.json", "http://here:1/base/rpc?x=1"]);
  const headers = /** @type {Record<string, string>} */ (asked[1]?.init.headers);
  assert.equal(headers.authorization, "Bearer secret");
  assert.equal(headers["a2a-version"], "1.0");
});

test("a stream gives results, says its cursor, and ends with the server", async () => {
  const { asked, fetcher } = answering(events('id: 4\ndata: {"result":{"n":4}}\n\n: ping\n\nid: 5\ndata: {"result":{"n":5}}\n\n'));
  const wire = new Wire("", WHO, fetcher);
  const seen = [];
  for await (const result of wire.stream("SubscribeToTask", {}, new AbortController().signal, 3)) seen.push(result.n);
  assert.deepEqual(seen, [4, 5]);
  assert.equal(/** @type {Record<string, string>} */ (asked[0]?.init.headers)["last-event-id"], "3");
});

test("refusals are told apart: what passes, who may not, what is wrong", async () => {
  const error = { code: -32004, message: "it has ended", data: [{ metadata: { code: "task_ended" } }] };
  /** @type {[() => Response, typeof Lost | typeof Refused | typeof SignInWanted, RegExp][]} */
  const cases = [
    [json({ error }), Refused, /it has ended/],
    [json({ error: { message: "who are you?" } }, 401), SignInWanted, /who are you/],
    [json({ error: { message: "not yours", status: "FOREIGN_PARTICIPANT" } }, 403), SignInWanted, /not yours/],
    [json({ error: { message: "later" } }, 503, { "retry-after": "7" }), Lost, /later/],
    [json({ error: { message: "slower" } }, 429), Lost, /slower/],
    [() => new Response("<html>", { status: 413 }), Refused, /413/],
    [() => new Response("{", { status: 200 }), Lost, /cut off/],
  ];
  for (const [answer, type, words] of cases) {
    const wire = new Wire("", WHO, answering(answer).fetcher);
    await assert.rejects(wire.call("SendMessage"), (/** @type {any} */ told) => told instanceof type && words.test(told.message));
  }
  const wire = new Wire("", WHO, answering(json({ error }), json({}, 503, { "retry-after": "7" })).fetcher);
  await assert.rejects(wire.call("x"), { code: "task_ended" });
  await assert.rejects(wire.call("x"), { retryAfterS: 7 });
  await assert.rejects(wire.call("x"), Lost, "nobody answers");
});

test("a stream that is refused says so, and one that breaks is lost", async () => {
  const wire = new Wire("", WHO, answering(
    json({ error: { message: "gone", data: [{ metadata: { code: "task_ended" } }] } }),
    () => new Response(new ReadableStream({ pull: (controller) => controller.error(new Error("reset")) }), {
      headers: { "content-type": "text/event-stream" },
    }),
  ).fetcher);
  const read = async () => {
    for await (const _ of wire.stream("SubscribeToTask", {}, new AbortController().signal)) assert.ok(_);
  };
  await assert.rejects(read(), { code: "task_ended" });
  await assert.rejects(read(), Lost);
});

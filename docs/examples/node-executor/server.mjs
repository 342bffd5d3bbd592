// Hooks and a command for a tiny-harness, in Node 20 with nothing but its standard library.
//
//   TINY_HARNESS_HOOK_SECRET_NODE=... node server.mjs [HOST:PORT]
//
// The contract in words: docs/guide/serve-commands.md. `tiny-harness hooks check` says whether a service keeps it.

import { createHash, createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const KEY_ID = "node";
const MAX_BODY_BYTES = 1 << 20;
const WINDOW_S = 300; // how far a timestamp may be from this clock, either way
const MEMORY_S = 300; // how long an answered delivery is remembered
const MAX_SEEN = 100_000;
const MAX_ANSWERS = 10_000;
const DEADLINE_MS = 5_000;

// The value may hold two secrets, separated by a comma, while one is being replaced by the other.
const SECRETS = (process.env.TINY_HARNESS_HOOK_SECRET_NODE ?? "")
  .split(",")
  .map((word) => word.trim())
  .filter(Boolean)
  .slice(0, 2);

// ---------------------------------------------------------------------------------------------------------------------
// What is served. A body or hook takes the context and answers the fields to replace, or null; it may throw an Abort.

class Abort extends Error {}

const COMMANDS = {
  greet: {
    description: "Greet somebody",
    argument_hint: "<name>",
    async body(context) {
      const name = context.arguments.trim();
      if (!name) return { result: { reply: "Whom? /greet <name>", outcome: "refused" } };
      return { result: { reply: `Hello, ${name}!`, data: { name } } };
    },
  },
};

const HOOKS = {
  "command.invoked.in": (context) => command(context.command).body(context),
  // Words of others are data: look at them, never run them.
  "command.invoked.pre": async (context) => {
    // The second word lets `hooks check` see a refusal.
    if (/\bforbidden\b|conformance: abort/i.test(context.arguments)) throw new Abort("the arguments hold a forbidden word");
    const tidy = context.arguments.replace(/\s+/g, " ").trim();
    return tidy === context.arguments ? null : { arguments: tidy };
  },
};

function command(name) {
  if (!Object.hasOwn(COMMANDS, name)) throw new RpcError(-32601, "there is no such method here");
  return COMMANDS[name];
}

function health() {
  const commands = Object.entries(COMMANDS).map(([name, { description, argument_hint }]) => ({
    name,
    description,
    argument_hint,
  }));
  return { name: "node", points: Object.keys(HOOKS), commands };
}

// ---------------------------------------------------------------------------------------------------------------------
// Before anything is called: method, size, media type, signature.

class HttpError extends Error {
  constructor(status, word, message) {
    super(message);
    Object.assign(this, { status, word });
  }
}

async function readBody(request) {
  if (request.method !== "POST") throw new HttpError(405, "METHOD_NOT_ALLOWED", "only POST is understood");
  const tooLarge = new HttpError(413, "BODY_TOO_LARGE", `a body has at most ${MAX_BODY_BYTES} bytes`);
  if (Number(request.headers["content-length"] ?? 0) > MAX_BODY_BYTES) throw tooLarge;
  const mediaType = (request.headers["content-type"] ?? "").split(";")[0].trim().toLowerCase();
  if (mediaType !== "application/json") {
    throw new HttpError(415, "UNSUPPORTED_MEDIA_TYPE", "the body must be application/json");
  }
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > MAX_BODY_BYTES) throw tooLarge;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

// Each believed signature, until its timestamp is too old to be believed again: no call is taken twice.
const seen = new Map();
let sweptAt = 0;

function checkSignature(request, body) {
  const refuse = (why) => new HttpError(401, "UNAUTHENTICATED", why);
  const header = (name, pattern) => {
    const value = request.headers[`x-tiny-harness-${name}`];
    if (value === undefined) throw refuse(`the call is not signed: X-Tiny-Harness-${name} is missing`);
    if (!pattern.test(value)) throw refuse(`X-Tiny-Harness-${name} is malformed`);
    return value;
  };
  const key = header("key", /^[A-Za-z0-9._-]{1,64}$/);
  const timestamp = header("timestamp", /^[0-9]{1,12}$/);
  const delivery = header("delivery", /^[!-~]{1,128}$/);
  const attempt = header("attempt", /^[1-9][0-9]{0,2}$/);
  const shown = header("signature", /^v1=[0-9a-f]{64}$/);
  if (key !== KEY_ID) throw refuse("the key is not known here");
  const digest = createHash("sha256").update(body).digest("hex");
  // The path as it stands in the request line, with its query.
  const text = ["v1", request.method, request.url, key, timestamp, delivery, attempt, digest].join("\n");
  const matches = SECRETS.map((secret) => {
    const wanted = `v1=${createHmac("sha256", secret).update(text).digest("hex")}`;
    return timingSafeEqual(Buffer.from(wanted), Buffer.from(shown));
  });
  if (!matches.includes(true)) throw refuse("the signature does not match");
  const now = Date.now() / 1000;
  if (Math.abs(now - Number(timestamp)) > WINDOW_S) throw refuse("the timestamp is too far from this clock");
  if (now > sweptAt + 1) {
    for (const [signature, until] of seen) if (until < now) seen.delete(signature);
    sweptAt = now;
  }
  if (seen.has(shown)) throw refuse("the signature was used before");
  if (seen.size >= MAX_SEEN) throw refuse("too many signed calls in a short time");
  seen.set(shown, Number(timestamp) + WINDOW_S);
  return { delivery, attempt: Number(attempt) };
}

// ---------------------------------------------------------------------------------------------------------------------
// JSON-RPC 2.0: one call in, one answer out.

class RpcError extends Error {
  constructor(code, message, data) {
    super(message);
    Object.assign(this, { code, data });
  }
}

function parse(body) {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw new RpcError(-32700, "the body is no JSON");
  }
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const hasId = (call) => ["string", "number"].includes(typeof call.id);

async function answer(call, signed) {
  // Batches are arrays and notifications have no id: neither is run.
  if (!isObject(call) || call.jsonrpc !== "2.0" || typeof call.method !== "string" || !hasId(call)) {
    throw new RpcError(-32600, "the body is no JSON-RPC request; batches and notifications are not taken");
  }
  if (call.method === "hooks.health") return health();
  if (!Object.hasOwn(HOOKS, call.method)) throw new RpcError(-32601, "there is no such method here");
  const context = call.params?.context;
  const fits =
    isObject(context) &&
    `${context.operation}.${context.phase}` === call.method &&
    typeof context.command === "string" &&
    typeof context.arguments === "string" &&
    isObject(context.task);
  if (!fits) throw new RpcError(-32602, "the parameters are malformed");
  if (call.method.endsWith(".in")) command(context.command);
  return once(`${call.method} ${signed.delivery}`, () => run(call.method, context, signed));
}

// A delivery is done once: a retry gets the same answer, and waits for it if it is not there yet.
const deliveries = new Map();

function once(key, work) {
  const now = Date.now() / 1000;
  for (const [old, { at }] of deliveries) {
    if (at > now - MEMORY_S && deliveries.size < MAX_ANSWERS) break;
    deliveries.delete(old);
  }
  if (!deliveries.has(key)) deliveries.set(key, { at: now, answer: work() });
  return deliveries.get(key).answer;
}

async function run(point, context, signed) {
  const correlationId = typeof context.correlation_id === "string" ? context.correlation_id.slice(0, 128) : randomUUID();
  const given = { ...context, delivery_id: signed.delivery, attempt: signed.attempt };
  let timer;
  const deadline = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${DEADLINE_MS} ms`)), DEADLINE_MS);
  });
  try {
    const patch = (await Promise.race([HOOKS[point](given), deadline])) ?? null;
    if (Buffer.byteLength(JSON.stringify(patch)) > MAX_BODY_BYTES - 4096) throw new Error("the answer is too large");
    return patch;
  } catch (error) {
    if (error instanceof Abort) throw new RpcError(-32010, error.message, { reason: error.message });
    console.error(`${point} failed, correlation id ${correlationId}:`, error); // callers are told nothing of it
    throw new RpcError(-32603, "the executor failed", { correlation_id: correlationId });
  } finally {
    clearTimeout(timer);
  }
}

// ---------------------------------------------------------------------------------------------------------------------

function send(response, status, document, headers = {}) {
  const body = Buffer.from(JSON.stringify(document));
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": body.length, ...headers });
  response.end(body);
}

async function respond(request, response) {
  if (request.method === "GET" && request.url === "/healthz") return send(response, 200, { status: "ok" });
  const body = await readBody(request);
  const signed = checkSignature(request, body);
  let id = null;
  try {
    const call = parse(body);
    if (isObject(call) && hasId(call)) id = call.id;
    send(response, 200, { jsonrpc: "2.0", id, result: await answer(call, signed) });
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const { code, message, data } = error;
    send(response, 200, { jsonrpc: "2.0", id: code === -32600 ? null : id, error: { code, message, ...(data && { data }) } });
  }
}

const server = createServer((request, response) => {
  respond(request, response).catch((error) => {
    if (response.headersSent || response.destroyed) return;
    const known = error instanceof HttpError;
    if (!known) console.error(error);
    const [status, word, message] = known ? [error.status, error.word, error.message] : [500, "INTERNAL", "failed"];
    const headers = status === 405 ? { Allow: "POST" } : {};
    send(response, status, { error: { code: status, status: word, message } }, headers);
  });
});
server.requestTimeout = 10_000; // for a whole request to arrive

if (!SECRETS.length) {
  console.error("no secret to check signatures with: put one into $TINY_HARNESS_HOOK_SECRET_NODE");
  process.exit(2);
}
const [, host, port] = /^(.+):([0-9]+)$/.exec(process.argv[2] ?? "127.0.0.1:8091");
server.listen(Number(port), host, () => console.log(`serving http://${host}:${server.address().port}/rpc`));
process.on("SIGTERM", () => server.close(() => process.exit(0)) && server.closeIdleConnections());

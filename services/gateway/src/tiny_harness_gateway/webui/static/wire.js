/** A2A 1.0 over JSON-RPC, one attempt each: JSON in, JSON out, our errors thrown. Knows no page. */

import { SseReader } from "./sse.js";

/** @typedef {import("./types.js").Json} Json */
/** @typedef {{token: string, participant: string}} Credentials */

const CARD_PATH = "/.well-known/agent-card.json";
const BASE = "https://madarauchiha-314.github.io/tiny-harness/a2a/ext";
const EXTENSIONS = ["stream", "status", "task", "commands", "supervision"].map((name) => `${BASE}/${name}/v1`).join(", ");

/** A stream that says nothing for so long is dead: the server pings every 3 s. */
const SILENCE_MS = 10_000;
const CALL_MS = 60_000;

/** The harness could not be reached, or cannot answer now. Trying again helps. */
export class Lost extends Error {
  /** @param {string} message @param {number} [retryAfterS] */
  constructor(message, retryAfterS = 0) {
    super(message);
    this.retryAfterS = retryAfterS;
  }
}

/** The harness wants other credentials. */
export class SignInWanted extends Error {}

/** The harness refused; trying again does not help. */
export class Refused extends Error {
  /** @param {string} message @param {string} [code] */
  constructor(message, code = "") {
    super(message);
    this.code = code;
  }
}

export class Wire {
  #origin;
  #credentials;
  #fetch;
  #rpc = "/rpc";
  #calls = 0;

  /**
   * @param {string} origin Where the page comes from.
   * @param {Credentials} credentials
   * @param {typeof fetch} [fetcher]
   */
  constructor(origin, credentials, fetcher = (input, init) => fetch(input, init)) {
    this.#origin = origin;
    this.#credentials = credentials;
    this.#fetch = fetcher;
  }

  /** Read the agent card, and from it where the harness listens. @returns {Promise<Json>} */
  async card() {
    const response = await this.#reach(CARD_PATH, { cache: "no-cache" });
    if (!response.ok) throw await refusal(response);
    const card = await body(response);
    /** @type {Json[]} */
    const interfaces = card.supportedInterfaces ?? [];
    const found = interfaces.find((entry) => entry.protocolBinding === "JSONRPC");
    if (!found) throw new Refused("the agent card offers no JSON-RPC");
    // The card names its own host; the page may have been opened under another name of it.
    const { pathname, search } = new URL(found.url, this.#origin);
    this.#rpc = pathname + search;
    return card;
  }

  /**
   * Call a method.
   * @param {string} method
   * @param {Json} [params]
   * @returns {Promise<Json>}
   */
  async call(method, params = {}) {
    const response = await this.#post(method, params, {}, AbortSignal.timeout(CALL_MS));
    return result(await body(response));
  }

  /**
   * Call a method whose answer is a stream.
   * @param {string} method
   * @param {Json} params
   * @param {AbortSignal} signal Ends it.
   * @param {number | null} [cursor] The event after which to begin.
   * @returns {AsyncGenerator<Json>}
   */
  async *stream(method, params, signal, cursor = null) {
    /** @type {Record<string, string>} */
    const headers = cursor === null ? {} : { "last-event-id": String(cursor) };
    const quiet = new AbortController();
    const response = await this.#post(method, params, headers, AbortSignal.any([signal, quiet.signal]));
    if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream") || !response.body) {
      yield result(await body(response));
      return;
    }
    const pieces = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const events = new SseReader();
    try {
      for (;;) {
        const { done, value } = await heard(pieces.read(), quiet);
        if (done) return;
        for (const event of events.push(value)) yield result(JSON.parse(event.data));
      }
    } catch (error) {
      throw signal.aborted || error instanceof Refused ? error : new Lost("The connection was lost.");
    } finally {
      quiet.abort();
    }
  }

  /**
   * @param {string} method
   * @param {Json} params
   * @param {Record<string, string>} headers
   * @param {AbortSignal} signal
   */
  async #post(method, params, headers, signal) {
    this.#calls += 1;
    const { token, participant } = this.#credentials;
    const response = await this.#reach(this.#rpc, {
      method: "POST",
      signal,
      headers: {
        "content-type": "application/json",
        "a2a-version": "1.0",
        "a2a-extensions": EXTENSIONS,
        ...(token ? { authorization: `Bearer ${token}` } : {}),
        ...(participant ? { "x-participant-id": participant } : {}),
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: this.#calls, method, params }),
    });
    if (!response.ok) throw await refusal(response);
    return response;
  }

  /** @param {string} path @param {RequestInit} init */
  async #reach(path, init) {
    try {
      return await this.#fetch(this.#origin + path, { ...init, redirect: "error", credentials: "omit" });
    } catch (error) {
      if (init.signal?.aborted && !isTimeout(init.signal)) throw error;
      throw new Lost("The harness cannot be reached.");
    }
  }
}

/** @param {AbortSignal} signal */
const isTimeout = (signal) => signal.reason instanceof DOMException && signal.reason.name === "TimeoutError";

/**
 * Wait for the next piece of a stream, but not for ever.
 * @template T
 * @param {Promise<T>} piece
 * @param {AbortController} quiet
 */
async function heard(piece, quiet) {
  const timer = setTimeout(() => quiet.abort(), SILENCE_MS);
  try {
    return await piece;
  } finally {
    clearTimeout(timer);
  }
}

/** @param {Response} response @returns {Promise<Json>} */
async function body(response) {
  try {
    return await response.json();
  } catch {
    throw new Lost("The harness was cut off.");
  }
}

/** @param {Json} answer @returns {Json} */
function result(answer) {
  if (!answer.error) return answer.result ?? {};
  /** @type {Json[]} */
  const details = Array.isArray(answer.error.data) ? answer.error.data : [];
  const code = details.map((detail) => detail.metadata?.code).find(Boolean) ?? "";
  throw new Refused(answer.error.message ?? "The harness refused.", code);
}

/** @param {Response} response */
async function refusal(response) {
  /** @type {Json} */
  const told = await response.json().catch(() => ({}));
  const words = told.error?.message ?? `The harness answered ${response.status}.`;
  if (response.status === 503 || response.status === 429) {
    return new Lost(words, Number(response.headers.get("retry-after")) || 1);
  }
  const isForeign = told.error?.status === "FOREIGN_PARTICIPANT";
  return response.status === 401 || isForeign ? new SignInWanted(words) : new Refused(words, told.error?.status ?? "");
}

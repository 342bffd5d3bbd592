/** Reads A2A JSON. The only module that knows its shapes; lenient: what it does not know is left out. */

import { ASKING, STATE_LABELS } from "./words.js";

/** @typedef {import("./types.js").Json} Json */
/** @typedef {import("./types.js").Message} Message */
/** @typedef {import("./types.js").TaskData} TaskData */
/** @typedef {import("./types.js").TaskEvent} TaskEvent */
/** @typedef {import("./types.js").TaskView} TaskView */
/** @typedef {import("./types.js").Changed} Changed */

const METADATA = "io.github.madarauchiha-314.tiny-harness";
const EXTENSIONS = "https://madarauchiha-314.github.io/tiny-harness/a2a/ext";
/** @param {Json | undefined} metadata @param {string} name @returns {Json} */
const under = (metadata, name) => metadata?.[`${METADATA}/${name}`] ?? {};

export const EVENT_TYPE = "application/vnd.tiny-harness.event+json";
export const STREAM_KEY = `${METADATA}/stream`;

/**
 * Read a StreamResponse; null if it is of a kind or in a state that this version does not know.
 * @param {Json} payload
 * @returns {TaskEvent | null}
 */
export function decodeEvent(payload) {
  if (payload.task) {
    const view = decodeTask(payload.task);
    return view && { kind: "task", view, seq: view.seq };
  }
  return payload.statusUpdate ? decodeUpdate(payload.statusUpdate) : null;
}

/** Read a Task. @param {Json} body @returns {TaskView | null} */
export function decodeTask(body) {
  const standing = readStanding(body);
  if (!standing) return null;
  /** @type {Message[]} */
  const messages = (body.history ?? []).map((/** @type {Json} */ message) => decodeMessage(message));
  const spoken = body.status.message && decodeMessage(body.status.message);
  if (spoken && messages.every((message) => message.id !== spoken.id)) messages.push(spoken);
  return {
    ...standing,
    id: body.id ?? "",
    contextId: body.contextId ?? "",
    at: body.status.timestamp ?? null,
    seq: number(under(body.metadata, "stream").seq),
    data: readData(under(body.metadata, "task")),
    messages: messages.filter((message) => message.text),
  };
}

/**
 * Read a Message; what its event says of a command counts as if the message said it.
 * @param {Json} message
 * @param {Json} [metadata]
 * @returns {Message}
 */
export function decodeMessage(message, metadata) {
  const texts = (message.parts ?? []).map((/** @type {Json} */ part) => part.text).filter(isText);
  const said = { ...under(message.metadata, "commands"), ...under(metadata, "commands") };
  const isAgents = message.role === "ROLE_AGENT";
  return {
    id: message.messageId ?? "",
    role: isAgents ? (said.literal === true ? "note" : "agent") : "user",
    text: texts.join("\n\n"),
    command: isAgents && said.name && said.outcome ? { name: said.name, outcome: said.outcome } : null,
  };
}

/** List the commands that a card offers. @param {Json} card @returns {import("./types.js").Offer[]} */
export function decodeOffers(card) {
  const entries = extension(card, "commands")?.params?.commands;
  return (Array.isArray(entries) ? entries : [])
    .filter((entry) => isText(entry?.name) && /^[A-Za-z0-9][\w.-]*$/.test(entry.name))
    .map((entry) => ({
      name: entry.name,
      description: isText(entry.description) ? entry.description : "",
      argumentHint: isText(entry.argument_hint) ? entry.argument_hint : "",
    }));
}

/** Name whom an extended card is for. @param {Json} card @returns {string} */
export const decodeCaller = (card) => extension(card, "task")?.params?.caller?.id ?? "";

/** @param {Json} card @param {string} name @returns {Json | undefined} */
function extension(card, name) {
  /** @type {Json[]} */
  const found = card.capabilities?.extensions ?? [];
  return found.find((entry) => entry.uri === `${EXTENSIONS}/${name}/v1`);
}

/** @param {Json} body @returns {TaskEvent | null} */
function decodeUpdate(body) {
  const told = under(body.metadata, "stream");
  if (told.delta) return readDelta(told.delta);
  const standing = readStanding(body);
  if (!standing) return null;
  const received = told.received ? decodeMessage(told.received) : null;
  const spoken = body.status.message ? decodeMessage(body.status.message, body.metadata) : null;
  const isWord = received !== null && told.received_as !== "control";
  const hasData = body.metadata?.[`${METADATA}/task`] !== undefined;
  return {
    ...standing,
    kind: isWord ? "received" : told.tool_calls?.length ? "stepped" : spoken ? "replied" : "state",
    taskId: body.taskId ?? "",
    contextId: body.contextId ?? "",
    at: body.status.timestamp ?? null,
    seq: number(told.seq),
    data: hasData ? readData(under(body.metadata, "task")) : null,
    inReplyTo: texts(told.in_reply_to),
    refused: texts(told.refused),
    read: texts(told.read),
    message: isWord ? received : spoken,
    receivedAs: told.received_as ?? null,
    tools: Array.isArray(told.tool_calls) ? told.tool_calls.filter((/** @type {Json} */ use) => isText(use?.name)) : [],
  };
}

/** @param {Json} delta @returns {TaskEvent} */
function readDelta(delta) {
  const { turn, step, attempt, index } = delta;
  return { kind: "delta", messageId: delta.message_id ?? "", turn, step, attempt, index, text: delta.text ?? "" };
}

/** @param {Json} body @returns {import("./types.js").Standing | null} */
function readStanding(body) {
  const state = body.status?.state;
  if (!isText(state) || !(state in STATE_LABELS)) return null;
  const why = state === "TASK_STATE_INPUT_REQUIRED" ? under(body.metadata, "status") : {};
  const subState = isText(why.sub_state) ? why.sub_state : null;
  const requestId = isText(why.request_id) ? why.request_id : null;
  const asks = requestId !== null || ASKING.has(subState ?? "");
  const supervision = under(body.metadata, "supervision");
  return {
    state,
    subState,
    question: asks ? { subState: subState ?? "", requestId, choices: texts(why.choices) } : null,
    supervision: isText(supervision.worker) ? /** @type {any} */ (supervision) : null,
  };
}

/** @param {Json} found @returns {TaskData} */
function readData(found) {
  /** @type {TaskData} */
  const data = {};
  if (isText(found.name)) data.name = found.name;
  if (Array.isArray(found.participants)) data.participants = found.participants;
  if (Array.isArray(found.parent_tasks)) data.parents = texts(found.parent_tasks);
  if (Array.isArray(found.sub_tasks)) data.subTasks = found.sub_tasks;
  if (Array.isArray(found.plan?.steps)) data.plan = found.plan;
  if (found.usage) data.usage = found.usage;
  if (isText(found.model)) data.model = found.model;
  if (isText(found.reasoning_effort)) data.effort = found.reasoning_effort;
  return data;
}

/** @param {unknown} value @returns {value is string} */
const isText = (value) => typeof value === "string";
/** @param {unknown} value @returns {string[]} */
const texts = (value) => (Array.isArray(value) ? value.filter(isText) : []);
/** @param {unknown} value */
const number = (value) => (typeof value === "number" ? value : null);

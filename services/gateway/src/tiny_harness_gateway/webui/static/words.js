/** The words for states, the same on every surface: `tiny_harness.states` and `tiny_harness.ext.supervision` have them too. */

/** @typedef {import("./types.js").Supervision} Supervision */

/** @type {Record<string, string>} */
export const STATE_LABELS = {
  TASK_STATE_SUBMITTED: "Queued",
  TASK_STATE_WORKING: "Working",
  TASK_STATE_COMPLETED: "Completed",
  TASK_STATE_FAILED: "Failed",
  TASK_STATE_CANCELED: "Canceled",
  TASK_STATE_INPUT_REQUIRED: "Input required",
  TASK_STATE_REJECTED: "Rejected",
  TASK_STATE_AUTH_REQUIRED: "Sign-in required",
};

/** @type {Record<string, string>} An unknown sub-state shows as its state's label only. */
export const SUB_STATE_LABELS = {
  "awaiting-next-message": "Your turn",
  "awaiting-answer": "Waiting for your answer",
  "awaiting-approval": "Waiting for your approval",
  "awaiting-budget": "Waiting for more budget",
};

export const ASKING = new Set(["awaiting-answer", "awaiting-approval", "awaiting-budget"]);

const ENDED = new Set(["TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"]);

/** Whether a task has ended for good. @param {string} state */
export const isEnded = (state) => ENDED.has(state);

/** Whether a turn runs, or is about to. @param {string} state */
export const isBusy = (state) => state === "TASK_STATE_WORKING" || state === "TASK_STATE_SUBMITTED";

/**
 * Put a state and its sub-state into words, such as `Input required · Your turn`.
 * @param {string} state
 * @param {string | null} [subState]
 */
export function describe(state, subState) {
  const label = STATE_LABELS[state] ?? state.replace("TASK_STATE_", "");
  const detail = state === "TASK_STATE_INPUT_REQUIRED" ? SUB_STATE_LABELS[subState ?? ""] : undefined;
  return detail ? `${label} · ${detail}` : label;
}

/**
 * Put what is worth a look of a supervised task into words.
 * @param {Supervision | null} told
 */
export function marks(told) {
  if (!told) return [];
  const reminders = told.reminders ?? 0;
  /** @type {[string, boolean][]} */
  const found = [
    [`place ${told.queue_position} in the queue`, told.queue_position != null],
    [reminders > 1 ? `reminded ${reminders} times` : "reminded once", reminders > 0],
    ["stalled", Boolean(told.stalled)],
    ["stopped", Boolean(told.stopped)],
    ["about to expire", (told.warnings ?? 0) > 0 && !told.expired],
    ["expired", Boolean(told.expired)],
  ];
  return found.filter(([, applies]) => applies).map(([words]) => words);
}

/**
 * Say in a few characters what a task has used, such as `12.3k tokens · cost 0.0210`; empty if it is not known.
 * @param {import("./types.js").Usage | null | undefined} usage
 */
export function usageWords(usage) {
  if (!usage) return "";
  const tokens = usage.input_tokens + usage.output_tokens;
  const words = `${short(tokens)} token${tokens === 1 ? "" : "s"}`;
  return usage.cost == null ? words : `${words} · cost ${Number(usage.cost).toFixed(4)}`;
}

/** @param {number} count */
function short(count) {
  if (count >= 1_000_000) return `${(count / 1_000_000).toFixed(1)}M`;
  return count >= 1_000 ? `${(count / 1_000).toFixed(1)}k` : String(count);
}

/**
 * Name the tools that were used, each once, such as `orders.look ×2, orders.refund ✗`.
 * @param {import("./types.js").ToolUse[]} tools
 */
export function toolWords(tools) {
  /** @type {Map<string, number>} */
  const counted = new Map();
  for (const { name, is_error } of tools) {
    const key = `${name.split("/").at(-1)}${is_error ? " ✗" : ""}`;
    counted.set(key, (counted.get(key) ?? 0) + 1);
  }
  return [...counted].map(([name, count]) => (count > 1 ? `${name} ×${count}` : name)).join(", ");
}

const MAX_NOTE = 500;

/**
 * Put a note for the agent into words for a person: cut short, without what only models need.
 * @param {string} text
 */
export function noteWords(text) {
  const lines = text.split("\n").filter((line) => line.trim() && !/^<\/?[a-z_]+>$/.test(line));
  const words = lines.join("\n");
  return words.length > MAX_NOTE ? `${words.slice(0, MAX_NOTE)} …` : words;
}

/**
 * Show a moment where the reader is: the time of a moment today, else the day.
 * @param {string | null} at
 * @param {Date} [now]
 */
export function moment(at, now = new Date()) {
  if (!at) return "";
  const when = new Date(at);
  if (Number.isNaN(when.getTime())) return "";
  return isSameDay(when, now)
    ? when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })
    : when.toLocaleDateString([], { day: "numeric", month: "short" });
}

/** @param {Date} one @param {Date} other */
export const isSameDay = (one, other) => one.toDateString() === other.toDateString();

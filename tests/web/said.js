/** A2A JSON as the gateway sends it, for tests. */

const BASE = "io.github.madarauchiha-314.tiny-harness";

/** @typedef {Record<string, any>} Json */

/** @param {string} text @param {Json} [more] @returns {Json} */
export const user = (text, more = {}) => ({ messageId: `u-${text}`, role: "ROLE_USER", parts: [{ text }], ...more });

/** @param {string} text @param {Json} [more] @returns {Json} */
export const agent = (text, more = {}) => ({ messageId: `a-${text}`, role: "ROLE_AGENT", parts: [{ text }], ...more });

/** @param {Json} extensions @returns {Json} */
export const metadata = (extensions) =>
  Object.fromEntries(Object.entries(extensions).map(([name, data]) => [`${BASE}/${name}`, data]));

/**
 * @param {string} state
 * @param {Json[]} history
 * @param {Json} [extensions]
 * @returns {Json}
 */
export const task = (state, history, extensions = {}) => ({
  id: "t1",
  contextId: "c1",
  status: { state: `TASK_STATE_${state}`, timestamp: "2026-12-01T10:00:00Z" },
  history,
  metadata: metadata({ stream: { seq: 1 }, ...extensions }),
});

/**
 * @param {string} state
 * @param {Json} stream What the stream extension says.
 * @param {Json | null} [message]
 * @param {Json} [extensions]
 * @returns {Json}
 */
export const update = (state, stream, message = null, extensions = {}) => ({
  statusUpdate: {
    taskId: "t1",
    contextId: "c1",
    status: { state: `TASK_STATE_${state}`, timestamp: "2026-12-01T10:00:01Z", ...(message ? { message } : {}) },
    metadata: metadata({ stream, ...extensions }),
  },
});

/** @param {string} text @param {number} index @param {number} [attempt] @param {string} [id] @returns {Json} */
export const delta = (text, index, attempt = 1, id = "a-1") =>
  update("WORKING", { delta: { message_id: id, turn: 1, step: 1, attempt, index, text } });

/** The shapes that the page's modules hand to one another. Nothing runs here. */

/** @typedef {Record<string, any>} Json */

/**
 * @typedef {object} Message One message of a conversation.
 * @property {string} id
 * @property {"user" | "agent" | "note"} role `note`: the harness tells the agent something.
 * @property {string} text All its text parts, joined by blank lines.
 * @property {{name: string, outcome: "done" | "refused" | "failed"} | null} command On the answer to a command.
 */

/**
 * @typedef {object} Question What a task waits to be told.
 * @property {string} subState
 * @property {string | null} requestId What an answer names; null: a message answers it.
 * @property {string[]} choices What may be answered; empty: anything.
 */

/** @typedef {{id: string, kind: string, role: string, display_name?: string}} Participant */
/** @typedef {{task_id: string, agent?: string | null, state: string, sub_state?: string | null}} SubTask */
/** @typedef {{id: string, name: string, status: "pending" | "active" | "done", output?: string | null}} PlanStep */
/** @typedef {{calls: number, input_tokens: number, output_tokens: number, cost?: string | number | null}} Usage */

/**
 * @typedef {object} Supervision How a supervised task stands with its worker.
 * @property {string} worker
 * @property {number | null} [queue_position]
 * @property {number} [reminders]
 * @property {boolean} [stalled]
 * @property {boolean} [stopped]
 * @property {number} [warnings]
 * @property {boolean} [expired]
 * @property {string | null} [last_worker_line]
 */

/**
 * @typedef {object} TaskData What the harness says of a task beside its state; absent: as it was.
 * @property {string} [name]
 * @property {Participant[]} [participants]
 * @property {string[]} [parents]
 * @property {SubTask[]} [subTasks]
 * @property {{steps: PlanStep[]} | null} [plan]
 * @property {Usage | null} [usage]
 * @property {string | null} [model]
 * @property {string | null} [effort]
 */

/**
 * @typedef {object} Standing How a task stands.
 * @property {string} state Its A2A state, such as `TASK_STATE_WORKING`.
 * @property {string | null} subState
 * @property {Question | null} question
 * @property {Supervision | null} supervision
 */

/** @typedef {Standing & {id: string, contextId: string, at: string | null, seq: number | null, data: TaskData, messages: Message[]}} TaskView */

/** @typedef {{kind: "task", view: TaskView, seq: number | null}} TaskShown */
/** @typedef {{name: string, is_error: boolean}} ToolUse */

/**
 * @typedef {Standing & {
 *   kind: "received" | "replied" | "stepped" | "state",
 *   taskId: string, contextId: string, at: string | null, seq: number | null,
 *   data: TaskData | null, inReplyTo: string[], refused: string[], read: string[],
 *   message: Message | null, receivedAs: string | null, tools: ToolUse[],
 * }} Changed
 */

/** @typedef {{kind: "delta", messageId: string, attempt: number, step: number, turn: number, index: number, text: string}} Delta */
/** @typedef {TaskShown | Changed | Delta} TaskEvent */

/** @typedef {{name: string, description: string, argumentHint: string}} Offer A slash command, as the card offers it. */

export {};

/** What a task waits to be told, above the composer, with what can be chosen. */

import { get, keyed, make, setText } from "./dom.js";
import { SUB_STATE_LABELS } from "./words.js";

/** @typedef {import("./types.js").Question} Question */

export class QuestionPanel {
  #panel = get("question", HTMLElement);
  #words = get("question-words", HTMLElement);
  #choices = get("choices", HTMLElement);
  #shown = "";
  #answer;

  /** @param {(question: Question, choice: string) => void} answer */
  constructor(answer) {
    this.#answer = answer;
  }

  /** @param {Question | null} question */
  show(question) {
    this.#panel.hidden = question === null;
    const told = JSON.stringify(question);
    if (told === this.#shown || question === null) return void (this.#shown = told);
    this.#shown = told;
    setText(this.#words, SUB_STATE_LABELS[question.subState] ?? "Waiting for you");
    this.#choices.replaceChildren();
    keyed(this.#choices, question.choices, (choice) => choice, (choice) =>
      make("button", { type: "button", onclick: () => this.#answer(question, choice) }, choice),
    );
  }
}

/** What the empty composer says. @param {import("./room.js").Room} room */
export function promptOf(room) {
  if (room.hasEnded) return "This task has ended. A message starts a new one in the same context.";
  const question = room.standing?.question;
  if (!question) return "Message, or / for commands";
  const refuses = question.subState === "awaiting-approval" && question.choices.length > 0;
  return refuses ? "A message refuses, with its words as the reason" : "Your answer";
}

/**
 * Find the choice that a text is, of a question that takes nothing else for an answer.
 * @param {Question | null | undefined} question
 * @param {string} text
 */
export function chosen(question, text) {
  if (!question?.requestId) return null;
  const said = text.trim().toLowerCase();
  return question.choices.find((choice) => choice.toLowerCase() === said) ?? null;
}

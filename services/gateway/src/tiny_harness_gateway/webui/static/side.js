/** What is known of a task beside its conversation: plan, sub-tasks, supervision, people, usage. Empty parts are not there. */

import { get, make, setText } from "./dom.js";
import { describe, marks, usageWords } from "./words.js";

/** @typedef {import("./room.js").Room} Room */

const STEP_MARKS = { done: "✓", active: "▸", pending: "·" };
const STEP_WORDS = { done: "done", active: "active", pending: "to do" };
const ROLES = ["watcher", "reporter", "admin"];

export class Side {
  #side = get("side", HTMLElement);
  #about = get("about", HTMLDetailsElement);
  #summary = get("summary", HTMLElement);
  #facts = get("facts", HTMLElement);
  #wide = matchMedia("(min-width: 62rem)");
  #shown = "";
  #acts;

  /** @param {{nameOf: (id: string) => string, invite: (id: string, role: string) => void}} acts */
  constructor(acts) {
    this.#acts = acts;
    this.#wide.addEventListener("change", () => this.#fold());
    this.#fold();
  }

  /** On a wide page all is open; on a narrow one it is one line. */
  #fold() {
    this.#about.open = this.#wide.matches;
  }

  /** @param {Room} room */
  show(room) {
    const { data, standing } = room;
    const names = (data.subTasks ?? []).map((child) => this.#acts.nameOf(child.task_id));
    const told = JSON.stringify([room.taskId, data, standing?.supervision, room.isOpen, names]);
    this.#side.hidden = standing === null;
    // Somebody may be writing into the form: it is drawn anew only when there is something new.
    if (told === this.#shown || standing === null) return;
    this.#shown = told;
    const writing = this.#facts.querySelector("input")?.value ?? "";
    this.#facts.replaceChildren(...this.#sections(room).filter((section) => section !== null));
    const field = this.#facts.querySelector("input");
    if (field) field.value = writing;
    setText(this.#summary, summaryOf(room));
  }

  /** @param {Room} room */
  #sections(room) {
    return [plan(room), this.#subTasks(room), supervision(room), this.#people(room), usage(room)];
  }

  /** @param {Room} room */
  #subTasks({ data }) {
    const children = data.subTasks ?? [];
    if (children.length === 0) return null;
    const lines = children.map((child) => {
      const words = describe(child.state, child.sub_state);
      const name = this.#acts.nameOf(child.task_id) || child.task_id;
      const dot = make("span", { class: "dot", "data-state": child.state, "aria-hidden": "true" });
      if (child.agent) return make("li", {}, dot, `${name} at ${child.agent} · ${words}`);
      const link = make("a", { href: `#/t/${encodeURIComponent(child.task_id)}` }, name);
      return make("li", {}, dot, link, make("span", { class: "quiet" }, ` ${words}`));
    });
    return section(`Sub-tasks · ${children.length}`, make("ul", { class: "children" }, ...lines));
  }

  /** @param {Room} room */
  #people(room) {
    const people = room.data.participants ?? [];
    const lines = people.map((person) => make("li", {}, `${person.display_name || person.id} · ${person.role}`));
    return section("People", make("ul", {}, ...lines), room.isOpen && this.#invitation());
  }

  #invitation() {
    const id = make("input", { type: "text", "aria-label": "Whom to invite", placeholder: "Invite somebody", autocomplete: "off", spellcheck: false });
    const role = make("select", { "aria-label": "As what" }, ...ROLES.map((name) => make("option", {}, name)));
    const form = make("form", { class: "invite" }, id, role, make("button", { type: "submit" }, "Invite"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (id.value.trim()) this.#acts.invite(id.value.trim(), role.value);
      id.value = "";
    });
    return form;
  }
}

/** @param {string} title @param {...import("./dom.js").Child} parts */
const section = (title, ...parts) => make("section", {}, make("h2", {}, title), ...parts);

/** @param {Room} room */
function plan({ data }) {
  const steps = data.plan?.steps ?? [];
  if (steps.length === 0) return null;
  const lines = steps.map((step) =>
    make(
      "li",
      { class: step.status },
      make("span", { "aria-hidden": "true" }, `${STEP_MARKS[step.status] ?? "·"} `),
      make("span", { class: "unseen" }, `${STEP_WORDS[step.status] ?? step.status}: `),
      step.name,
      step.output ? make("span", { class: "quiet" }, ` ${step.output}`) : null,
    ),
  );
  return section(planWords(steps), make("ol", { class: "plan" }, ...lines));
}

/** @param {import("./types.js").PlanStep[]} steps */
const planWords = (steps) => `Plan · ${steps.filter((step) => step.status === "done").length} of ${steps.length} done`;

/** @param {Room} room */
function supervision({ standing }) {
  const told = standing?.supervision;
  if (!told) return null;
  const lines = [`Worker: ${told.worker}`, ...marks(told), told.last_worker_line ? `Said last: ${told.last_worker_line}` : ""];
  return section("Supervision", make("ul", {}, ...lines.filter(Boolean).map((line) => make("li", {}, line))));
}

/** @param {Room} room */
function usage({ data }) {
  const words = usageWords(data.usage);
  const lines = [data.model && `Model ${data.model}`, data.effort && `Effort ${data.effort}`, words].filter(Boolean);
  return lines.length ? section("Usage", make("ul", {}, ...lines.map((line) => make("li", {}, line)))) : null;
}

/** All of it on one line, for a narrow page. @param {Room} room */
function summaryOf({ data, standing }) {
  const steps = data.plan?.steps ?? [];
  const current = steps.find((step) => step.status === "active") ?? steps.find((step) => step.status === "pending");
  const parts = [
    steps.length ? `${planWords(steps)}${current ? `: ${current.name}` : ""}` : "",
    data.subTasks?.length ? `Sub-tasks ${data.subTasks.length}` : "",
    marks(standing?.supervision ?? null).join(" · "),
  ];
  return parts.filter(Boolean).join(" · ") || "About this task";
}

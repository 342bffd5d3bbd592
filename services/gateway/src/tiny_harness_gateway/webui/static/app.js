/** Puts the page together: the address says which task, one stream tells what happens to it. */

import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { get, make, setText } from "./dom.js";
import { control, Harness, patch } from "./harness.js";
import { Head } from "./head.js";
import { Outbox } from "./outbox.js";
import { promptOf, QuestionPanel } from "./question.js";
import { Room } from "./room.js";
import { endSession, keepSession, openSession } from "./session.js";
import { Side } from "./side.js";
import { TaskList } from "./tasklist.js";
import { startTheme } from "./theme.js";
import { Refused, SignInWanted, Wire } from "./wire.js";
import { describe } from "./words.js";

/** @typedef {import("./types.js").TaskEvent} TaskEvent */

/** Commands that an empty page offers. */
const FIRST_OFFERS = 4;

class App {
  #harness;
  #head;
  #side;
  #tasks;
  #composer;
  #question;
  #conversation;
  #outbox;
  #said = get("said", HTMLElement);
  #trouble = get("trouble", HTMLElement);
  /** The rooms that were open before: going back finds them as they were. @type {Map<string, Room>} */
  #rooms = new Map();
  #room = new Room(null);
  #stream = new AbortController();
  #isDrawing = false;
  #isReadingOlder = false;
  /** @type {(() => void) | null} */
  #again = null;

  /** @param {Harness} harness @param {Head} head */
  constructor(harness, head) {
    this.#harness = harness;
    this.#head = head;
    this.#tasks = new TaskList(harness, () => this.#draw());
    this.#side = new Side({
      nameOf: (id) => this.#tasks.nameOf(id),
      invite: (id, role) => this.#act((taskId) => patch({ participants: [{ id, role }] }, taskId)),
    });
    this.#composer = new Composer({
      send: (text) => this.#send(text),
      stop: () => this.#act((taskId) => control("interrupt", taskId)),
      write: (text) => this.#keep(text),
    });
    this.#question = new QuestionPanel(({ requestId }, value) => {
      if (requestId === null) return this.#send(value);
      this.#act((taskId) => control("answer", taskId, { request_id: requestId, value }));
      this.#composer.focus();
    });
    this.#conversation = new Conversation(() => void this.#readOlder());
    this.#outbox = new Outbox(harness, {
      sent: (room) => this.#sent(room),
      refused: (room, text, error) => this.#takeBack(room, text, error),
    });
  }

  /** What the head's buttons do. */
  complete = () => this.#act((taskId) => control("complete", taskId));
  cancel = () => void this.#try(async () => this.#room.taskId && (await this.#harness.cancel(this.#room.taskId)));
  /** @param {string} id */
  nameOf = (id) => this.#tasks.nameOf(id);

  /** Open what the address names, and listen. @param {import("./types.js").Offer[]} offers */
  start(offers) {
    this.#composer.offers = offers;
    addEventListener("hashchange", () => this.#open());
    document.addEventListener("visibilitychange", () => this.#follow());
    addEventListener("keydown", (event) => this.#key(event));
    addEventListener("beforeunload", (event) => this.#outbox.waiting > 0 && event.preventDefault());
    get("skip", HTMLButtonElement).addEventListener("click", () => this.#composer.focus());
    get("retry", HTMLButtonElement).addEventListener("click", () => this.#again?.());
    const menu = get("menu", HTMLButtonElement);
    menu.addEventListener("click", () => this.#menu(menu.getAttribute("aria-expanded") !== "true"));
    this.#open();
    void this.#tasks.refresh();
  }

  /** Take commands up that the harness offers by now. */
  async #refreshOffers() {
    this.#composer.offers = await this.#harness.offers();
  }

  #open() {
    const [, id = ""] = /^#\/t\/(.+)$/.exec(location.hash) ?? [];
    const taskId = id ? decodeURIComponent(id) : null;
    this.#room = this.#roomOf(taskId);
    this.#tasks.current = taskId;
    this.#menu(false);
    this.#composer.text = this.#room.draft || stored(taskId);
    this.#say(this.#room.trouble);
    this.#follow();
    this.#drawNow();
    this.#tasks.show();
    if (matchMedia("(hover: hover)").matches) this.#composer.focus();
    else get("name", HTMLElement).focus({ preventScroll: true });
  }

  /** @param {string | null} taskId */
  #roomOf(taskId) {
    const room = (taskId && this.#rooms.get(taskId)) || new Room(taskId);
    if (taskId) this.#rooms.set(taskId, room);
    return room;
  }

  /** Follow the open task, while somebody looks at the page. */
  #follow() {
    this.#stream.abort();
    this.#stream = new AbortController();
    const { signal } = this.#stream;
    const room = this.#room;
    if (document.visibilityState === "hidden" || room.taskId === null || room.hasEnded) return;
    void this.#try(async () => {
      if (room.cursor === null && room.taskId) this.#see(room, await first(this.#harness, room.taskId));
      if (!signal.aborted && room.taskId && !room.hasEnded) {
        await this.#harness.follow(room.taskId, room.cursor, signal, (event) => this.#see(room, event));
      }
    }, () => this.#follow());
  }

  /** @param {Room} room @param {TaskEvent} event */
  #see(room, event) {
    const before = room.standing;
    room.see(event);
    if (room === this.#room) this.#announce(before, event);
    if (event.kind !== "delta") {
      for (const { task_id: id } of room.data.subTasks ?? []) if (!this.#tasks.nameOf(id)) void this.#learn(id);
      if (room.parent && !this.#tasks.nameOf(room.parent)) void this.#learn(room.parent);
      if (before?.state !== room.standing?.state) void this.#tasks.refresh();
    }
    this.#draw();
  }

  /** Say changes for those who do not see them. @param {Room["standing"]} before @param {TaskEvent} event */
  #announce(before, event) {
    const now = this.#room.standing;
    if (!now || event.kind === "delta" || event.kind === "task") return;
    const isReply = event.kind === "replied" && event.inReplyTo.length > 0;
    const isNews = before?.state !== now.state || before?.subState !== now.subState;
    if (isReply || isNews) setText(this.#said, `${isReply ? "Reply finished. " : ""}${describe(now.state, now.subState)}`);
    if (isReply && event.message?.command) void this.#refreshOffers();
  }

  /** Learn the name of a task that the list does not have. @param {string} id */
  async #learn(id) {
    if (this.#asked.has(id)) return;
    this.#asked.add(id);
    try {
      this.#tasks.learn(await this.#harness.task(id, 0));
      this.#draw();
    } catch {
      // It may be another harness's, or not ours to see: its id is shown then.
    }
  }
  #asked = new Set();

  async #readOlder() {
    const room = this.#room;
    if (this.#isReadingOlder || !room.taskId || !room.oldest) return;
    this.#isReadingOlder = true;
    await this.#try(async () => {
      let fresh = 0;
      while (fresh === 0 && room.oldest && room.taskId) {
        const { items, oldest } = await this.#harness.older(room.taskId, room.oldest);
        fresh = room.prepend(items);
        room.oldest = oldest;
      }
    });
    this.#isReadingOlder = false;
    this.#drawNow();
  }

  /** @param {string} text */
  #send(text) {
    this.#say("");
    void this.#outbox.post(this.#room, text);
    this.#conversation.toEnd();
    this.#draw();
  }

  /** @param {Room} room */
  #sent(room) {
    const isNew = room.taskId !== null && !this.#rooms.has(room.taskId);
    if (isNew && room.taskId) this.#rooms.set(room.taskId, room);
    if (room === this.#room && (isNew || room.next)) {
      const id = /** @type {string} */ (room.next ?? room.taskId);
      room.next = null;
      keepDraft(null, "");
      keepDraft(id, this.#composer.text);
      this.#roomOf(id).draft = this.#composer.text;
      // The new task takes this page's place in the tab's history, not an entry of its own.
      if (isNew) history.replaceState(null, "", `#/t/${encodeURIComponent(id)}`);
      else location.hash = `#/t/${encodeURIComponent(id)}`;
      if (isNew) this.#open();
    }
    void this.#tasks.refresh();
    this.#draw();
  }

  /** What a person typed is never lost. @param {Room} room @param {string} text @param {Error} error */
  #takeBack(room, text, error) {
    const isHere = room === this.#room;
    const kept = [text, isHere ? this.#composer.text : room.draft].filter(Boolean).join("\n");
    room.draft = kept;
    room.trouble = error.message;
    keepDraft(room.taskId, kept);
    if (error instanceof SignInWanted) return this.#expire();
    if (isHere) {
      this.#composer.text = kept;
      this.#say(error.message);
    }
    this.#draw();
  }

  /** @param {(taskId: string) => import("./types.js").Json} message */
  #act(message) {
    const { taskId } = this.#room;
    if (taskId === null) return;
    const said = message(taskId); // the same message on another try: it counts once
    const once = () => {
      this.#say("");
      void this.#try(() => this.#harness.send(said), once);
    };
    once();
  }

  /** @param {() => Promise<unknown>} work @param {() => void} [again] What Retry does. */
  async #try(work, again) {
    const room = this.#room;
    try {
      await work();
    } catch (error) {
      if (error instanceof SignInWanted) return this.#expire();
      const isRefused = error instanceof Refused;
      if (isRefused && error.code === "task_ended" && room.hasEnded) return; // pressed twice: it is as wanted
      room.trouble = error instanceof Error ? error.message : String(error);
      if (room === this.#room) this.#say(room.trouble, isRefused ? undefined : again);
    }
  }

  #expire() {
    endSession(sessionStorage);
    location.reload();
  }

  /** @param {string} words @param {() => void} [again] */
  #say(words, again) {
    if (words === "") this.#room.trouble = "";
    this.#again = again ?? null;
    this.#trouble.hidden = words === "";
    setText(get("trouble-words", HTMLElement), words);
    get("retry", HTMLElement).hidden = !again;
  }

  /** @param {string} text */
  #keep(text) {
    this.#room.draft = text;
    keepDraft(this.#room.taskId, text);
  }

  /** Draw at most once a frame. */
  #draw() {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    requestAnimationFrame(() => this.#drawNow());
  }

  #drawNow() {
    this.#isDrawing = false;
    const room = this.#room;
    this.#head.show(room);
    this.#side.show(room);
    this.#question.show(room.standing?.question ?? null);
    this.#composer.show(promptOf(room), room.isBusy);
    this.#conversation.show(room);
    this.#showEmpty(room);
  }

  /** @param {Room} room */
  #showEmpty(room) {
    const empty = get("empty", HTMLElement);
    empty.hidden = room.items.length > 0 || room.taskId !== null;
    if (empty.hidden || empty.childElementCount > 0) return;
    const offers = this.#composer.offers.slice(0, FIRST_OFFERS);
    const lines = offers.map((offer) => {
      const write = () => {
        this.#composer.text = offer.argumentHint ? `/${offer.name} ` : `/${offer.name}`;
        this.#composer.focus();
      };
      return make("li", {}, make("button", { type: "button", onclick: write }, `/${offer.name}`), ` ${offer.description}`);
    });
    const words = "Say what you want done. The task stays open until you complete or cancel it.";
    empty.append(make("p", {}, words), make("ul", {}, ...lines));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const isWriting = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
    if (event.key === "/" && !isWriting && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      this.#composer.focus();
    }
    if (event.key === "Escape") this.#menu(false);
  }

  /** Open or close the list of tasks on a narrow page. @param {boolean} isOpen */
  #menu(isOpen) {
    const menu = get("menu", HTMLButtonElement);
    if (isOpen === (menu.getAttribute("aria-expanded") === "true")) return;
    menu.setAttribute("aria-expanded", String(isOpen));
    document.body.classList.toggle("menu-open", isOpen);
    if (isOpen) get("new", HTMLElement).focus();
    else menu.focus();
  }
}

/** Read a task as it is when it is opened. @param {Harness} harness @param {string} id @returns {Promise<TaskEvent>} */
async function first(harness, id) {
  const view = await harness.task(id);
  return { kind: "task", view, seq: view.seq };
}

/** What is being written outlives a reload. @param {string | null} taskId @param {string} text */
function keepDraft(taskId, text) {
  const key = `tiny-harness.draft.${taskId ?? ""}`;
  if (text) sessionStorage.setItem(key, text);
  else sessionStorage.removeItem(key);
}

/** @param {string | null} taskId */
const stored = (taskId) => sessionStorage.getItem(`tiny-harness.draft.${taskId ?? ""}`) ?? "";

/** Ask for credentials. @param {string} why */
function askToSignIn(why) {
  get("sign-in", HTMLElement).hidden = false;
  setText(get("sign-in-words", HTMLElement), why);
  get("sign-in-form", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    const [token, participant] = ["token", "participant"].map((id) => get(id, HTMLInputElement).value.trim());
    keepSession(sessionStorage, { token: token ?? "", participant: participant ?? "" });
    location.reload();
  });
  get("token", HTMLElement).focus();
}

async function main() {
  startTheme();
  const session = openSession(location, history, sessionStorage);
  /** @type {{app: App | null}} */
  const page = { app: null };
  const head = new Head({
    complete: () => page.app?.complete(),
    cancel: () => page.app?.cancel(),
    nameOf: (id) => page.app?.nameOf(id) ?? "",
  });
  const harness = new Harness(new Wire(location.origin, session), { links: (words) => head.link(words) });
  try {
    get("page", HTMLElement).hidden = false;
    const { caller, offers } = await harness.signIn();
    setText(get("who", HTMLElement), caller);
    const signOut = get("sign-out", HTMLButtonElement);
    signOut.hidden = false;
    signOut.addEventListener("click", () => {
      sessionStorage.clear();
      location.reload();
    });
    page.app = new App(harness, head);
    page.app.start(offers);
  } catch (error) {
    if (!(error instanceof SignInWanted)) throw error;
    endSession(sessionStorage);
    get("page", HTMLElement).hidden = true;
    askToSignIn(session.token || session.participant ? error.message : "Sign in to go on.");
  }
}

void main();

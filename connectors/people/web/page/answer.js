// The answer to one request: the buttons, and what may go with them.

import { remembers } from "./lasting.js";
import { el, keyOf } from "./parts.js";
import { AnswerOptions } from "./answer-options.js";

const settle = 400; // ms in which a click or a key was meant for what stood there before

/** <nod-answer> takes the answer to one request. It fires "answer" with
 * {request, option, message, extra, others}. Its buttons do nothing while what
 * stands there is new, while no answer would arrive and, where they allow,
 * until the request was in view from its beginning to its end. */
export class Answer extends HTMLElement {
  #request = null;
  #unseen = new Set(); // ends of the request that have not been in view
  #settled = false; // it has stood still for long enough
  #online = true;
  #busy = false;
  #over = false; // how it ended stands where the buttons were
  #timer = 0;
  #observer = null;
  #buttons = [];
  #options = null;
  #words = false; // a question that may be answered in one's own

  #message = el("textarea");
  #hint = el("p", "hint");
  #actions = el("div", "actions");
  #status = el("p", "status");

  constructor() {
    super();
    this.#message.addEventListener("input", () => { if (this.#words) this.arm(); });
  }

  /** open offers the answers to a request. ends are elements at its beginning
   * and its end, root is what scrolls them, others are requests that ask the
   * same. */
  open({ request, ends, root = null, others = [] }) {
    this.#request = request;
    this.#busy = this.#over = false;
    this.#message.rows = 2;
    this.#message.maxLength = 4000;
    this.#message.value = "";
    this.#message.disabled = false;
    this.#status.setAttribute("role", "status");
    this.#status.textContent = "";
    this.#options?.close();
    this.#options = new AnswerOptions(request, others, () => this.arm(), () => this.#show());
    this.#words = request.kind === "question" && request.options.some((o) => o.text);
    this.replaceChildren(
      el("label", "message", this.#words ? "Your answer, in your own words" : "Tell the agent (optional)", this.#message),
      this.#options.element, this.#hint, this.#actions, this.#status);
    this.#offer(request);
    this.#watch(ends, root);
    this.arm();
  }

  /** counts takes in how many calls the request, or one of the others, is about now:
   * an answer is about those that stand here. */
  counts(request) {
    if (!this.#request || this.#over || this.#busy) return;
    if (keyOf(request) === keyOf(this.#request)) {
      this.#request = request;
      this.arm();
    } else this.#options.counts(request);
  }

  disconnectedCallback() {
    this.close();
  }

  /** close forgets the request, and decides nothing. */
  close() {
    this.#request = null;
    this.#buttons = [];
    this.#observer?.disconnect();
    this.#options?.close();
    clearTimeout(this.#timer);
  }

  /** start puts the focus where nothing is allowed. */
  start() {
    (this.#buttons.find((b) => !b.allows) ?? this.#buttons[0])?.button.focus();
  }

  // The buttons, Deny first. They stay focusable while they do nothing.
  #offer(request) {
    const plain = request.options.filter((o) => o.label && !chosenAbove(request, o));
    const own = request.options.find((o) => chosenAbove(request, o));
    if (own && !plain.some((o) => o.kind === "allow_once")) plain.push({ kind: "allow_once", label: "allow", unsaid: true });
    this.#buttons = plain.map((option) => {
      const allows = option.kind.startsWith("allow_");
      const button = el("button", (allows ? "allow" : "deny") + (option.remembered ? " kept" : ""));
      button.type = "button";
      const offered = { option, allows, button, sure: !option.remembered };
      button.addEventListener("click", () => this.#click(offered));
      return offered;
    });
    this.#buttons.sort((a, b) => a.allows - b.allows);
    this.#actions.replaceChildren(...this.#buttons.map((b) => b.button));
  }

  // Allow waits until all that is allowed has been in view.
  #watch(ends, root) {
    this.#unseen = new Set(ends);
    this.#observer?.disconnect();
    this.#observer = new IntersectionObserver((entries) => {
      for (const e of entries) if (e.isIntersecting) this.#unseen.delete(e.target);
      if (this.#unseen.size) return;
      this.#observer.disconnect();
      this.#show();
    }, { root });
    for (const end of ends) this.#observer.observe(end);
  }

  /** arm makes the buttons do nothing for a moment: what stands there is new. */
  arm() {
    if (!this.#request) return;
    this.#settled = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#settled = true;
      this.#show();
    }, settle);
    this.#show();
  }

  /** online says whether an answer would arrive. */
  set online(yes) {
    if (this.#online === yes) return;
    this.#online = yes;
    this.arm();
  }

  #ready({ allows, option }) {
    if (!this.#request || !this.#settled || !this.#online || this.#busy) return false;
    if (!this.#worded(option, allows)) return false;
    return !allows || this.#unseen.size === 0 && !this.#fault && (this.#options.plain || option.kind === "allow_once");
  }

  // Why nothing can be allowed as things are, or "".
  get #fault() {
    if (!this.#options.plain || !this.#buttons.some((b) => b.option.unsaid)) return this.#options.fault;
    return "The agent offers no yes for this call alone: choose above what is to last, or deny.";
  }

  // What a denial leaves with the agent that only wants its second press, or "".
  get #remembering() {
    const b = this.#buttons.find((b) => b.option.remembered && b.sure);
    return b ? `Denied so, ${remembers(b.option)}` : "";
  }

  // Some options take words; with the other answers to a question they would be
  // lost.
  #worded({ text }, allows) {
    const said = this.#message.value.trim() !== "";
    return text ? said : !(this.#words && allows && said);
  }

  #show() {
    for (const b of this.#buttons) {
      b.button.textContent = this.#label(b);
      b.button.setAttribute("aria-disabled", String(!this.#ready(b)));
    }
    if (!this.#buttons.length) this.#hint.textContent = "";
    else if (!this.#online) this.#hint.textContent = "Disconnected: no answer would arrive.";
    else if (this.#remembering) this.#hint.textContent = this.#remembering;
    else if (this.#unseen.size) this.#hint.textContent = "Read to the end to allow.";
    else this.#hint.textContent = this.#fault || this.#wording;
  }

  get #wording() {
    if (!this.#words) return "";
    if (this.#message.value.trim()) return "Your words are the answer: they go with the button that takes them.";
    return "Choose an answer, or write your own.";
  }

  #label({ option, sure }) {
    const once = option.kind === "allow_once";
    const said = once && this.#options.label || option.label;
    const words = said[0].toUpperCase() + said.slice(1) + (this.#request.times ? ` ${this.#request.times}` : "");
    if (option.remembered && sure) return `Sure? ${words}`;
    return this.#options.count(words);
  }

  #click(offered) {
    if (!this.#ready(offered)) return;
    if (!offered.sure) { // what lasts takes a second step
      offered.sure = true;
      this.arm();
      return;
    }
    this.#busy = true;
    this.#status.textContent = "Your answer is being recorded.";
    this.#show();
    this.dispatchEvent(new CustomEvent("answer", {
      bubbles: true,
      detail: {
        request: this.#request, option: offered.allows && this.#options.option || offered.option, message: this.#message.value.trim(),
        extra: offered.allows ? this.#options.extra : {}, others: this.#options.others,
      },
    }));
  }

  /** failed says that an answer did not count, and lets another be given. */
  failed(text) {
    if (this.#over) return;
    this.#busy = false;
    this.#status.textContent = text;
    this.arm();
  }

  /** forget takes a request out of those that are answered alike. */
  forget(key) {
    if (this.#options?.forget(key)) this.arm();
  }

  /** ended puts how it ended in the place of the buttons. It returns whether
   * the focus was here. */
  ended(text) {
    if (!this.#request) return false;
    const focused = this.contains(document.activeElement);
    this.#over = true;
    this.#buttons = [];
    this.#observer?.disconnect();
    this.#actions.replaceChildren(el("p", "outcome", text));
    this.#message.disabled = true;
    this.#options.element.remove();
    this.#status.textContent = "";
    this.#show();
    return focused;
  }

  /** late says what happened to somebody whose answer came second. */
  late(text) {
    if (this.#over) this.#status.textContent = text;
    else this.ended(text);
  }

  /** gone is ended for what ended unseen. */
  gone(text) {
    return this.#over ? false : this.ended(text);
  }
}

// What the agent remembers is chosen where nod's rules are: there is one way to
// have a yes last.
function chosenAbove(request, option) {
  return request.kind === "tool_call" && option.kind === "allow_always";
}

customElements.define("nod-answer", Answer);

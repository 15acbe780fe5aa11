// The answer panel of one request: its buttons, and the fields of an answer.

import { remembers } from "./lasting.js";
import { el, keyOf, outcome } from "./parts.js";
import { AnswerOptions } from "./answer-options.js";
import { Reading } from "./reading.js";

const armDelay = 400; // ms after a change in which clicks and keys have no effect, because the user meant them for the old content

/** <nod-answer> takes the answer to one request. It fires "answer" with {request,
 * option, message, extra, others}, and "ready" when its buttons become active or
 * inactive. Its buttons do nothing for a moment after a
 * change and while the page is offline. A button that allows is also inactive until every
 * part of the request has been in view. */
export class Answer extends HTMLElement {
  #request = null;
  #armed = false; // no change for the time armDelay
  #online = true;
  #busy = false;
  #hasEnded = false; // the outcome has replaced the buttons
  #timer = 0;
  #reading = null; // which parts of the request have been in view
  #buttons = [];
  #options = null;
  #takesText = false; // the request is a question that takes free text
  ask = null; // sends a request to nod

  #message = el("textarea");
  #hint = el("p", "hint");
  #actions = el("div", "actions");
  #status = el("p", "status");

  constructor() {
    super();
    this.#message.addEventListener("input", () => { if (this.#takesText) this.arm(); });
  }

  /** open offers the answers to a request. ends are the elements at its beginning and its end, and
   * others are the identical requests. */
  open({ request, ends, others = [] }) {
    this.#request = request;
    this.#busy = this.#hasEnded = false;
    this.#message.rows = 1; // it grows with its text
    this.#message.maxLength = 4000;
    this.#message.value = "";
    this.#message.disabled = false;
    this.#status.setAttribute("role", "status");
    this.#status.textContent = "";
    this.#options?.close();
    this.#options = new AnswerOptions(request, others, { ask: this.ask, changed: () => this.arm(), seen: () => this.#update() });
    this.#takesText = request.kind === "question" && request.options.some((o) => o.text);
    this.replaceChildren(
      el("label", "message", this.#takesText ? "Your answer, in your own words" : "Tell the agent (optional)", this.#message),
      this.#options.element, this.#hint, this.#actions, this.#status);
    this.#addButtons(request);
    this.#reading?.close();
    this.#reading = new Reading(...ends, () => this.#update());
    this.arm();
  }

  /** updateWaiters stores a new version of the request or of an identical request. An answer
   * covers the number of calls in the stored version. */
  updateWaiters(request) {
    if (!this.#request || this.#hasEnded || this.#busy) return;
    if (keyOf(request) === keyOf(this.#request)) {
      this.#request = request;
      this.arm();
    } else this.#options.updateWaiters(request);
  }

  disconnectedCallback() {
    this.close();
  }

  /** close removes the request from the panel. It decides nothing. */
  close() {
    this.#request = null;
    this.#buttons = [];
    this.#reading?.close();
    this.#options?.close();
    clearTimeout(this.#timer);
  }

  /** press presses the button that allows or denies: "allow" or "deny". It does nothing if
   * there are several such buttons. */
  press(effect) {
    const all = this.#buttons.filter((b) => b.allows === (effect === "allow"));
    if (all.length === 1) this.#click(all[0]);
  }

  /** can reports whether press would now answer this request alone, and an allow would be for
   * this call alone, unchanged. */
  can(effect) {
    const all = this.#buttons.filter((b) => b.allows === (effect === "allow"));
    if (all.length !== 1 || !this.#ready(all[0]) || !all[0].sure) return false;
    return !this.#options.others.length && (effect !== "allow" || !this.#options.label);
  }

  /** choose presses the answer of a question with this number, as its button shows it. */
  choose(n) {
    const answer = this.#request?.kind === "question" && this.#buttons.find((b) => b.button.dataset.key === String(n));
    if (answer) this.#click(answer);
  }

  /** focusMessage puts the focus in the message to the agent. */
  focusMessage() {
    this.#message.focus();
  }

  /** unfold opens one of the answer's options, "edit" or "lasting", and puts the focus in it. */
  unfold(name) {
    this.#options?.unfold(name);
  }

  /** focusFirst puts the focus on a button that does not allow, if there is one. */
  focusFirst() {
    (this.#buttons.find((b) => !b.allows) ?? this.#buttons[0])?.button.focus();
  }

  // Adds the buttons, Deny first. An inactive button can also have the focus.
  #addButtons(request) {
    const plain = request.options.filter((o) => o.label && !chosenInLasting(request, o));
    const own = request.options.find((o) => chosenInLasting(request, o));
    if (own && !plain.some((o) => o.kind === "allow_once")) plain.push({ kind: "allow_once", label: "allow", missing: true });
    this.#buttons = plain.map((option) => {
      const allows = option.kind.startsWith("allow_");
      const button = el("button", (allows ? "allow" : "deny") + (option.remembered ? " kept" : ""));
      button.type = "button";
      const offered = { option, allows, button, sure: !option.remembered };
      button.addEventListener("click", (e) => { if (e.detail < 2) this.#click(offered); }); // the second click of a double click was for the old content
      return offered;
    });
    this.#buttons.sort((a, b) => a.allows - b.allows);
    const answers = request.kind === "question" ? this.#buttons.filter((b) => b.allows) : [];
    for (const effect of [true, false]) { // the keys of keys.js, shown on the buttons
      const all = this.#buttons.filter((b) => b.allows === effect);
      if (all.length === 1 && request.kind !== "question") all[0].button.dataset.shortcut = effect ? "a" : "d";
    }
    answers.slice(0, 9).forEach((b, i) => { b.button.dataset.key = i + 1; });
    this.#actions.replaceChildren(...this.#buttons.map((b) => b.button));
  }

  /** arm makes the buttons inactive for a moment, because the content has changed. */
  arm() {
    if (!this.#request) return;
    this.#armed = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#armed = true;
      this.#update();
    }, armDelay);
    this.#update();
  }

  /** online sets whether an answer can reach nod. */
  set online(yes) {
    if (this.#online === yes) return;
    this.#online = yes;
    this.arm();
  }

  #ready({ allows, option }) {
    if (!this.#request || !this.#armed || !this.#online || this.#busy) return false;
    if (!this.#textFits(option, allows)) return false;
    return !allows || this.#reading.finished && !this.#fault && (this.#options.plain || option.kind === "allow_once");
  }

  // The reason why the user cannot allow now, or "".
  get #fault() {
    if (!this.#options.plain || !this.#buttons.some((b) => b.option.missing)) return this.#options.fault;
    return "The agent offers no way to allow this call alone: choose a lasting rule above, or deny.";
  }

  // A warning while an option that the agent remembers waits for its second press, or "".
  get #memoryHint() {
    const b = this.#buttons.find((b) => b.option.remembered && b.sure);
    return b ? `With this denial, ${remembers(b.option)}` : "";
  }

  // Reports whether an option fits the entered text. An option for a text needs one. Other
  // allowing options of such a question do not fit, because they would lose the text.
  #textFits({ text }, allows) {
    const said = this.#message.value.trim() !== "";
    return text ? said : !(this.#takesText && allows && said);
  }

  #update() {
    for (const b of this.#buttons) {
      b.button.textContent = this.#label(b);
      b.button.setAttribute("aria-disabled", String(!this.#ready(b)));
    }
    this.dispatchEvent(new CustomEvent("ready", { bubbles: true }));
    if (!this.#buttons.length) this.#hint.textContent = "";
    else if (!this.#online) this.#hint.textContent = "Disconnected: no answer would arrive.";
    else if (this.#memoryHint) this.#hint.textContent = this.#memoryHint;
    else if (this.#reading.skipped) this.#hint.textContent = "Read the part that you skipped to allow.";
    else if (!this.#reading.finished) this.#hint.textContent = "Read to the end to allow.";
    else this.#hint.textContent = this.#fault || this.#textHint;
  }

  get #textHint() {
    if (!this.#takesText) return "";
    if (this.#message.value.trim()) return "Your text is the answer: press the button that takes it.";
    return "Choose an answer, or write your own.";
  }

  #label({ option, sure }) {
    const once = option.kind === "allow_once";
    const said = once && this.#options.label || option.label;
    const words = said[0].toUpperCase() + said.slice(1) + (this.#request.times ? ` ${this.#request.times}` : "");
    if (option.remembered && sure) return `Sure? ${words}`;
    return this.#options.withCount(words);
  }

  #click(offered) {
    if (!this.#ready(offered)) return;
    if (!offered.sure) { // an option that the agent remembers takes two presses
      offered.sure = true;
      this.arm();
      return;
    }
    this.#busy = true;
    this.#status.textContent = "Your answer is being recorded.";
    this.#update();
    this.dispatchEvent(new CustomEvent("answer", {
      bubbles: true,
      detail: {
        request: this.#request, option: offered.allows && this.#options.option || offered.option, message: this.#message.value.trim(),
        extra: offered.allows ? this.#options.extra : {}, others: this.#options.others,
      },
    }));
  }

  /** failed shows that an answer did not count, and lets the user try again. */
  failed(text) {
    if (this.#hasEnded) return;
    this.#busy = false;
    this.#status.textContent = text;
    this.arm();
  }

  /** forget removes an identical request that has ended. */
  forget(key) {
    if (this.#options?.forget(key)) this.arm();
  }

  /** ended replaces the buttons by the outcome, with the time of the decision if it is known. It returns
   * true if the focus was in this panel. */
  ended(text, decision = null) {
    if (!this.#request) return false;
    const focused = this.contains(document.activeElement);
    this.#hasEnded = true;
    this.#buttons = [];
    this.#reading?.close();
    this.#actions.replaceChildren(outcome(text, decision));
    this.#message.disabled = true;
    this.#options.element.remove();
    this.#status.textContent = "";
    this.#update();
    return focused;
  }

  /** late shows the outcome to a user who answered too late. */
  late(text, decision = null) {
    if (this.#hasEnded) this.#status.textContent = text;
    else this.ended(text, decision);
  }

  /** gone is ended for a request that ended while the page was offline. */
  gone(text) {
    return this.#hasEnded ? false : this.ended(text);
  }
}

// Reports whether an option has no button. Lasting allows of a tool call are offered only in the list
// with nod's lasting rules.
function chosenInLasting(request, option) {
  return request.kind === "tool_call" && option.kind === "allow_always";
}

customElements.define("nod-answer", Answer);

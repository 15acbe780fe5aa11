// The answer to one request: the buttons and the fields that go with an answer.

import { remembers } from "./lasting.js";
import { el, keyOf } from "./parts.js";
import { AnswerOptions } from "./answer-options.js";

const armDelay = 400; // ms after a change in which a click or a key was meant for the previous content

/** <nod-answer> takes the answer to one request. It fires "answer" with {request,
 * option, message, extra, others}. Its buttons do nothing for a moment after a
 * change and while the page is offline. Allowing buttons also wait until the request
 * was in view from its beginning to its end. */
export class Answer extends HTMLElement {
  #request = null;
  #unseen = new Set(); // ends of the request that have not been in view yet
  #armed = false; // nothing has changed for armDelay
  #online = true;
  #busy = false;
  #hasEnded = false; // the outcome has replaced the buttons
  #timer = 0;
  #observer = null;
  #buttons = [];
  #options = null;
  #takesText = false; // the request is a question that takes free text

  #message = el("textarea");
  #hint = el("p", "hint");
  #actions = el("div", "actions");
  #status = el("p", "status");

  constructor() {
    super();
    this.#message.addEventListener("input", () => { if (this.#takesText) this.arm(); });
  }

  /** open offers the answers to a request. ends are elements at its beginning and
   * its end, root is their scroll container, others are the identical requests. */
  open({ request, ends, root = null, others = [] }) {
    this.#request = request;
    this.#busy = this.#hasEnded = false;
    this.#message.rows = 2;
    this.#message.maxLength = 4000;
    this.#message.value = "";
    this.#message.disabled = false;
    this.#status.setAttribute("role", "status");
    this.#status.textContent = "";
    this.#options?.close();
    this.#options = new AnswerOptions(request, others, () => this.arm(), () => this.#update());
    this.#takesText = request.kind === "question" && request.options.some((o) => o.text);
    this.replaceChildren(
      el("label", "message", this.#takesText ? "Your answer, in your own words" : "Tell the agent (optional)", this.#message),
      this.#options.element, this.#hint, this.#actions, this.#status);
    this.#addButtons(request);
    this.#watchEnds(ends, root);
    this.arm();
  }

  /** updateWaiters stores a new version of the request, or of one of the identical
   * ones. An answer is for the number of calls shown here. */
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

  /** close removes the request and decides nothing. */
  close() {
    this.#request = null;
    this.#buttons = [];
    this.#observer?.disconnect();
    this.#options?.close();
    clearTimeout(this.#timer);
  }

  /** focusFirst puts the focus on a button that does not allow. */
  focusFirst() {
    (this.#buttons.find((b) => !b.allows) ?? this.#buttons[0])?.button.focus();
  }

  // The buttons, Deny first. They stay focusable while they are inactive.
  #addButtons(request) {
    const plain = request.options.filter((o) => o.label && !chosenInLasting(request, o));
    const own = request.options.find((o) => chosenInLasting(request, o));
    if (own && !plain.some((o) => o.kind === "allow_once")) plain.push({ kind: "allow_once", label: "allow", missing: true });
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

  // Allow waits until the whole request has been in view.
  #watchEnds(ends, root) {
    this.#unseen = new Set(ends);
    this.#observer?.disconnect();
    this.#observer = new IntersectionObserver((entries) => {
      for (const e of entries) if (e.isIntersecting) this.#unseen.delete(e.target);
      if (this.#unseen.size) return;
      this.#observer.disconnect();
      this.#update();
    }, { root });
    for (const end of ends) this.#observer.observe(end);
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

  /** online sets whether an answer can reach nod now. */
  set online(yes) {
    if (this.#online === yes) return;
    this.#online = yes;
    this.arm();
  }

  #ready({ allows, option }) {
    if (!this.#request || !this.#armed || !this.#online || this.#busy) return false;
    if (!this.#textFits(option, allows)) return false;
    return !allows || this.#unseen.size === 0 && !this.#fault && (this.#options.plain || option.kind === "allow_once");
  }

  // The reason why nothing can be allowed now, or "".
  get #fault() {
    if (!this.#options.plain || !this.#buttons.some((b) => b.option.missing)) return this.#options.fault;
    return "The agent offers no way to allow this call alone: choose a lasting rule above, or deny.";
  }

  // The effect on the agent of a denial that waits for its second press, or "".
  get #memoryHint() {
    const b = this.#buttons.find((b) => b.option.remembered && b.sure);
    return b ? `With this denial, ${remembers(b.option)}` : "";
  }

  // Some options take text; any other answer to a question would lose the text.
  #textFits({ text }, allows) {
    const said = this.#message.value.trim() !== "";
    return text ? said : !(this.#takesText && allows && said);
  }

  #update() {
    for (const b of this.#buttons) {
      b.button.textContent = this.#label(b);
      b.button.setAttribute("aria-disabled", String(!this.#ready(b)));
    }
    if (!this.#buttons.length) this.#hint.textContent = "";
    else if (!this.#online) this.#hint.textContent = "Disconnected: no answer would arrive.";
    else if (this.#memoryHint) this.#hint.textContent = this.#memoryHint;
    else if (this.#unseen.size) this.#hint.textContent = "Read to the end to allow.";
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
    if (!offered.sure) { // a lasting answer takes a second press
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

  /** failed shows that an answer did not count, and allows another try. */
  failed(text) {
    if (this.#hasEnded) return;
    this.#busy = false;
    this.#status.textContent = text;
    this.arm();
  }

  /** forget removes a request from those that get the same answer. */
  forget(key) {
    if (this.#options?.forget(key)) this.arm();
  }

  /** ended replaces the buttons by the outcome. It returns whether this panel had
   * the focus. */
  ended(text) {
    if (!this.#request) return false;
    const focused = this.contains(document.activeElement);
    this.#hasEnded = true;
    this.#buttons = [];
    this.#observer?.disconnect();
    this.#actions.replaceChildren(el("p", "outcome", text));
    this.#message.disabled = true;
    this.#options.element.remove();
    this.#status.textContent = "";
    this.#update();
    return focused;
  }

  /** late shows the outcome to a user who answered after the decision. */
  late(text) {
    if (this.#hasEnded) this.#status.textContent = text;
    else this.ended(text);
  }

  /** gone does the same as ended, for a request that ended while the page was
   * offline. */
  gone(text) {
    return this.#hasEnded ? false : this.ended(text);
  }
}

// An agent's option that lasts is chosen among nod's lasting rules, so that there is one
// place for lasting answers.
function chosenInLasting(request, option) {
  return request.kind === "tool_call" && option.kind === "allow_always";
}

customElements.define("nod-answer", Answer);

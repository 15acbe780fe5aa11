// One request, whole, and its answer.

import { el, keyOf, parts, risk } from "./parts.js";

const settle = 400; // ms in which a click or a key was meant for what stood there before

/** <nod-dialog> shows one request. It fires "answer" with {request, option,
 * message}; closing it decides nothing. */
export class Dialog extends HTMLElement {
  #request = null;
  #seen = false; // the end of the request was in view
  #settled = false; // it has stood still for long enough
  #online = true;
  #busy = false;
  #over = false; // how it ended stands where the buttons were
  #timer = 0;
  #observer = null;
  #buttons = [];

  #title = el("h2");
  #risk = el("span");
  #text = el("div", "text");
  #end = el("div", "end");
  #message = el("textarea");
  #hint = el("p", "hint");
  #actions = el("div", "actions");
  #status = el("p", "status");
  #dialog = el("dialog");

  connectedCallback() {
    this.#title.id = "request";
    this.#dialog.setAttribute("aria-labelledby", "request");
    this.#text.tabIndex = 0; // so that the keyboard can scroll it
    this.#text.setAttribute("role", "region");
    this.#text.setAttribute("aria-label", "The request, whole");
    this.#status.setAttribute("role", "status");
    this.#message.rows = 2;
    this.#message.maxLength = 4000;
    const label = el("label", "message", "Tell the agent (optional)", this.#message);
    const close = el("button", "close", "Close");
    close.type = "button";
    close.addEventListener("click", () => this.#dialog.close());
    this.#dialog.append(
      el("header", "", this.#title, this.#risk, close), this.#text,
      el("footer", "", label, this.#hint, this.#actions, this.#status));
    this.#dialog.addEventListener("close", () => this.#closed());
    this.replaceChildren(this.#dialog);
  }

  /** shows is the key of what is shown, or "". */
  get shows() {
    return this.#request ? keyOf(this.#request) : "";
  }

  /** open shows a request to be answered. */
  open(request) {
    this.#request = request;
    this.#busy = this.#over = false;
    this.#message.value = "";
    this.#message.disabled = false;
    this.#status.textContent = "";
    this.#title.textContent = request.summary;
    this.#risk.replaceChildren(risk(request));
    this.#text.replaceChildren(parts(request), this.#end);
    this.#offer(request);
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#text.scrollTop = 0;
    this.#watch();
    this.arm();
    (this.#buttons.find((b) => !b.allows) ?? this.#buttons[0])?.button.focus();
  }

  // The buttons, Deny first. They stay focusable while they do nothing.
  #offer(request) {
    this.#buttons = request.options.filter((o) => o.label).map((option) => {
      const allows = option.kind.startsWith("allow_");
      const button = el("button", allows ? "allow" : "deny", option.label[0].toUpperCase() + option.label.slice(1));
      button.type = "button";
      const offered = { option, allows, button, sure: !option.kind.endsWith("_always") || !allows };
      button.addEventListener("click", () => this.#click(offered));
      return offered;
    });
    this.#buttons.sort((a, b) => a.allows - b.allows);
    this.#actions.replaceChildren(...this.#buttons.map((b) => b.button));
  }

  // Allow waits until the end of what is allowed has been in view.
  #watch() {
    this.#seen = false;
    this.#observer?.disconnect();
    this.#observer = new IntersectionObserver((entries) => {
      if (!entries.some((e) => e.isIntersecting)) return;
      this.#seen = true;
      this.#observer.disconnect();
      this.#show();
    }, { root: this.#text });
    this.#observer.observe(this.#end);
  }

  /** arm makes the buttons do nothing for a moment: what stands there is new. */
  arm() {
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
    if (this.#request) this.arm();
  }

  #ready(offered) {
    return this.#settled && this.#online && !this.#busy && (this.#seen || !offered.allows);
  }

  #show() {
    for (const b of this.#buttons) b.button.setAttribute("aria-disabled", String(!this.#ready(b)));
    if (!this.#buttons.length) this.#hint.textContent = "";
    else if (!this.#online) this.#hint.textContent = "Disconnected: no answer would arrive.";
    else this.#hint.textContent = this.#seen ? "" : "Read to the end to allow.";
  }

  #click(offered) {
    if (!this.#ready(offered)) return;
    if (!offered.sure) { // what lasts takes a second step
      offered.sure = true;
      offered.button.textContent = `Sure? ${offered.option.label}`;
      this.arm();
      return;
    }
    this.#busy = true;
    this.#status.textContent = "Your answer is being recorded.";
    this.#show();
    this.dispatchEvent(new CustomEvent("answer", {
      detail: { request: this.#request, option: offered.option, message: this.#message.value.trim() },
    }));
  }

  /** failed says that an answer did not count, and lets another be given. */
  failed(text) {
    this.#busy = false;
    this.#status.textContent = text;
    this.arm();
  }

  /** ended puts how it ended in the place of the buttons; the request stays. */
  ended(text) {
    if (!this.#request) return;
    const focused = this.#actions.contains(document.activeElement);
    this.#over = true;
    this.#buttons = [];
    this.#observer?.disconnect();
    this.#actions.replaceChildren(el("p", "outcome", text));
    this.#message.disabled = true;
    this.#status.textContent = "";
    this.#show();
    if (focused) this.#dialog.querySelector(".close").focus();
  }

  /** late says what happened to somebody whose answer came second. */
  late(text) {
    if (this.#over) this.#status.textContent = text;
    else this.ended(text);
  }

  /** gone is ended for what ended unseen. */
  gone(text) {
    if (!this.#over) this.ended(text);
  }

  #closed() {
    if (this.#dialog.open) return; // another was opened before this was said
    const key = this.shows;
    this.#request = null;
    this.#buttons = [];
    this.#observer?.disconnect();
    clearTimeout(this.#timer);
    this.dispatchEvent(new CustomEvent("shut", { detail: key }));
  }
}

customElements.define("nod-dialog", Dialog);

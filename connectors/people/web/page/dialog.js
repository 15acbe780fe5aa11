// The dialog that shows one whole request and takes its answer.

import "./answer.js";
import { clock, el, keyOf, parts, risk } from "./parts.js";

/** <nod-dialog> shows one request and takes its answer (see <nod-answer>). If the user closes it,
 * it decides nothing and fires the event "closed" with the request's key. */
export class Dialog extends HTMLElement {
  #request = null;
  #title = el("h2", "unseen"); // invisible, because the payload is visible; a name of the dialog for screen readers
  #risk = el("span", "meta");
  #end = null; // the end of the text that must be visible before Allow is active
  #text = el("div", "text");
  #answer = document.createElement("nod-answer");
  #dialog = el("dialog");

  connectedCallback() {
    this.#title.id = "request";
    this.#dialog.setAttribute("aria-labelledby", "request");
    this.#text.tabIndex = 0; // so that the keyboard can scroll it
    this.#text.setAttribute("role", "region");
    this.#text.setAttribute("aria-label", "The request, whole");
    const close = el("button", "close", "Close");
    close.type = "button";
    close.addEventListener("click", () => this.#dialog.close());
    this.#dialog.append(el("header", "", this.#title, this.#risk, close), this.#text, el("footer", "", this.#answer));
    this.#dialog.addEventListener("close", () => this.#closed());
    this.replaceChildren(this.#dialog);
  }

  /** shows is the key of the request in the dialog, or "". */
  get shows() {
    return this.#request ? keyOf(this.#request) : "";
  }

  /** panel is the <nod-answer> of the dialog. */
  get panel() {
    return this.#answer;
  }

  /** open shows a request. others are the requests that are identical to it. */
  open(request, others) {
    const start = el("div", "end");
    this.#end = el("div", "end");
    this.#request = request;
    this.#title.textContent = request.summary;
    this.#risk.replaceChildren(risk(request), " · ", clock("until", request.deadline));
    this.#text.replaceChildren(start, parts(request, this.#end));
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#text.scrollTop = 0;
    this.#answer.open({ request, ends: [start, this.#end], root: this.#text, others });
    this.#answer.focusFirst();
  }

  /** updateWaiters shows a new version of the request or of an identical request. */
  updateWaiters(request) {
    if (keyOf(request) === this.shows) {
      this.#request = request;
      this.#text.querySelector(".parts").replaceWith(parts(request, this.#end));
    }
    this.#answer.updateWaiters(request);
  }

  /** ended replaces the buttons by the outcome and keeps the text of the request. */
  ended(text) {
    if (this.#answer.ended(text)) this.#dialog.querySelector(".close").focus();
  }

  /** gone is ended for a request that ended while the page was offline. */
  gone(text) {
    if (this.#answer.gone(text)) this.#dialog.querySelector(".close").focus();
  }

  #closed() {
    if (this.#dialog.open) return; // another request has been opened before this event
    const key = this.shows;
    this.#request = null;
    this.#answer.close();
    this.dispatchEvent(new CustomEvent("closed", { detail: key }));
  }
}

customElements.define("nod-dialog", Dialog);

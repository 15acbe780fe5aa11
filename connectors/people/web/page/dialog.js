// The pane that shows one whole request and takes its answer.

import "./answer.js";
import { icon } from "./icons.js";
import { clock, el, keyOf, parts, riskClass, sessionLink } from "./parts.js";

/** <nod-dialog> shows one request and takes its answer (see <nod-answer>). Beside the list
 * it is a pane; in a narrow window it covers the page. Closing it decides nothing and fires
 * "closed" with the request's key. */
export class Dialog extends HTMLElement {
  #request = null;
  #title = el("h2", "unseen"); // invisible, because the payload is visible; a name of the dialog for screen readers
  #meta = el("span", "meta");
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
    close.addEventListener("click", () => this.close());
    this.#dialog.append(el("div", "bar", this.#title, this.#meta, close), this.#text, el("div", "foot", this.#answer));
    this.replaceChildren(this.#dialog, el("aside", "blank", "Choose a request to read it whole, or press j."));
  }

  /** shows is the key of the request in the dialog, or "". */
  get shows() {
    return this.#request ? keyOf(this.#request) : "";
  }

  /** panel is the <nod-answer> of the dialog. */
  get panel() {
    return this.#answer;
  }

  /** covers says whether the pane covers the page, as in a narrow window. */
  set covers(yes) {
    this.#dialog.ariaModal = String(yes);
  }

  /** open shows a request. others are the requests identical to it. */
  open(request, others) {
    const start = el("div", "end");
    this.#end = el("div", "end");
    this.#request = request;
    this.#title.textContent = request.summary;
    this.#dialog.className = `risk-${riskClass(request.risk)}`;
    this.#meta.replaceChildren(icon(request), clock("until", request.deadline), sessionLink(request.session_id, request.session_label));
    this.#text.replaceChildren(start, parts(request, this.#end));
    this.#dialog.open = true; // without show(), which would move the focus
    this.#text.scrollTop = 0;
    this.#answer.open({ request, ends: [start, this.#end], others });
  }

  /** focusFirst puts the focus on a button that does not allow, if there is one. */
  focusFirst() {
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
  ended(text, decision = null) {
    if (this.#answer.ended(text, decision)) this.#dialog.querySelector(".close").focus();
  }

  /** gone is ended for a request that ended while the page was offline. */
  gone(text) {
    if (this.#answer.gone(text)) this.#dialog.querySelector(".close").focus();
  }

  /** close closes the pane. Nothing is decided. */
  close() {
    if (!this.#request) return;
    const key = this.shows;
    this.#request = null;
    this.#dialog.open = false;
    this.#answer.close();
    this.dispatchEvent(new CustomEvent("closed", { detail: key }));
  }
}

customElements.define("nod-dialog", Dialog);

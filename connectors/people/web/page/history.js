// The list of past decisions.

import { el, fold, parts, risk, sessionLink, when } from "./parts.js";

/** decided returns a list item with one decision. A click unfolds the request. */
export function decided(request) {
  const item = el("li", "decided", fold(
    [el("span", "outcome", request.text), el("span", "covers", request.summary)],
    el("p", "meta", risk(request), el("span", "", request.agent), sessionLink(request.session_id), when(request.decision.decided_at)),
    parts(request)));
  item.dataset.id = request.pending_id;
  return item;
}

/** <nod-history> lists decisions, newest first. The app sets the property ask to a function that
 * sends a request to nod. */
export class History extends HTMLElement {
  #list = el("ol", "rows");
  #status = el("p", "total");
  ask = null;

  connectedCallback() {
    this.#status.setAttribute("role", "status");
    this.replaceChildren(el("h2", "", "History"),
      el("p", "hint", "Decisions of the last 24 hours, by people and by rules. Requests without an id that a rule decided at once are only in the log."),
      this.#status, this.#list);
  }

  async load() {
    try {
      const reply = await this.ask("permissions.history", {});
      this.#list.replaceChildren(...reply.permissions.map(decided));
      this.#status.textContent = reply.more ? `The newest ${reply.permissions.length}.` : reply.permissions.length ? "" : "Nothing was decided.";
    } catch (failure) {
      if (failure) this.#status.textContent = failure.message;
    }
  }

  /** decided adds a new decision at the top of the list. */
  decided(request) {
    this.#list.prepend(decided(request));
    this.#status.textContent = "";
  }
}

customElements.define("nod-history", History);

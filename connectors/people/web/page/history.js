// Who decided what, when and where.

import { el, fold, parts, risk, sessionLink, when } from "./parts.js";

/** decided is one decision, with its request whole for who opens it. */
export function decided(request) {
  const item = el("li", "decided", fold(
    [el("span", "outcome", request.text), el("span", "what", request.summary)],
    el("p", "meta", risk(request), el("span", "", request.agent), sessionLink(request.session_id), when(request.decision.decided_at)),
    parts(request)));
  item.dataset.id = request.pending_id;
  return item;
}

/** <nod-history> lists what was decided, the newest first. ask asks nod. */
export class History extends HTMLElement {
  #list = el("ol", "rows");
  #note = el("p", "total");
  ask = null;

  connectedCallback() {
    this.#note.setAttribute("role", "status");
    this.replaceChildren(el("h2", "", "History"),
      el("p", "hint", "What was decided in the last 24 hours, by people and by rules. What an agent asks without an id of its own, and a rule decides at once, is in the log alone."),
      this.#note, this.#list);
  }

  async load() {
    try {
      const reply = await this.ask("permissions.history", {});
      this.#list.replaceChildren(...reply.permissions.map(decided));
      this.#note.textContent = reply.more ? `The newest ${reply.permissions.length}.` : reply.permissions.length ? "" : "Nothing was decided.";
    } catch (failure) {
      if (failure) this.#note.textContent = failure.message;
    }
  }

  /** decided puts what was just decided first. */
  decided(request) {
    this.#list.prepend(decided(request));
    this.#note.textContent = "";
  }
}

customElements.define("nod-history", History);

// The list of past decisions.

import { icon } from "./icons.js";
import { el, fold, outcomeParts, parts, risk, riskClass, sessionLink, when } from "./parts.js";

const outcomes = [["any outcome", ""], ["allowed", "allowed"], ["denied", "denied"], ["expired", "timed_out"], ["withdrawn", "withdrawn"], ["dismissed", "cancelled"]];
const pause = 200; // ms without a keystroke before a search begins

/** decided returns a list item with one decision. A click unfolds the request. */
export function decided(request) {
  const agent = [request.agent_name || request.agent, request.project].filter(Boolean).join(" · ");
  const item = el("li", `decided risk-${riskClass(request.risk)}`, fold(
    [icon(request), el("span", "covers", request.summary), el("span", `outcome ${request.decision.outcome}`, ...outcomeParts(request.text, request.decision))],
    el("p", "meta", risk(request), el("span", "", agent), sessionLink(request.session_id, request.session_label), when(request.decision.decided_at)),
    parts(request)));
  item.dataset.id = request.pending_id;
  return item;
}

/** <nod-history> lists decisions, newest first. The app sets the property ask to a function that
 * sends a request to nod. */
export class History extends HTMLElement {
  #list = el("ol", "rows");
  #status = el("p", "total");
  #search = el("input");
  #outcome = el("select");
  #timer = 0;
  #loads = 0;
  ask = null;

  connectedCallback() {
    if (this.firstChild) return;
    this.#status.setAttribute("role", "status");
    Object.assign(this.#search, { type: "search", placeholder: "Search" });
    this.#search.setAttribute("aria-label", "Search by agent, session, project, person or text");
    this.#outcome.setAttribute("aria-label", "Outcome");
    for (const [words, value] of outcomes) this.#outcome.append(new Option(words, value));
    const filters = el("form", "filters", this.#search, this.#outcome);
    filters.setAttribute("role", "search");
    filters.addEventListener("submit", (e) => e.preventDefault());
    filters.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.load(), pause);
    });
    this.replaceChildren(el("h2", "", "History"),
      el("p", "hint", "Decisions of the last 24 hours, by people and by rules. Requests without an id that a rule decided at once are only in the log."),
      filters, this.#status, this.#list);
  }

  /** focusSearch puts the focus in the search field. */
  focusSearch() {
    this.#search.focus();
  }

  async load() {
    const load = ++this.#loads;
    try {
      const reply = await this.ask("permissions.history", { query: this.#search.value.trim(), outcome: this.#outcome.value });
      if (load !== this.#loads) return; // a newer search has begun
      this.#list.replaceChildren(...reply.permissions.map(decided));
      const n = reply.permissions.length;
      if (reply.more) this.#status.textContent = `The newest ${n}. Search to see others.`;
      else this.#status.textContent = n ? "" : this.#filtered ? "No decision matches." : "Nothing was decided.";
    } catch (failure) {
      if (failure) this.#status.textContent = failure.message;
    }
  }

  get #filtered() {
    return this.#search.value.trim() !== "" || this.#outcome.value !== "";
  }

  /** decided adds a new decision at the top. */
  decided(request) {
    if (this.#filtered) return; // the next search finds it
    this.#list.prepend(decided(request));
    this.#status.textContent = "";
  }
}

customElements.define("nod-history", History);

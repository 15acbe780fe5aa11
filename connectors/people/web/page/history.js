// The list of past decisions.

import { icon } from "./icons.js";
import { el, fold, keyOf, outcomeParts, parts, risk, riskClass, sessionLink, when } from "./parts.js";

const outcomes = [["any outcome", ""], ["allowed", "allowed"], ["denied", "denied"], ["expired", "timed_out"], ["withdrawn", "withdrawn"], ["dismissed", "cancelled"]];
const pause = 200; // ms without a keystroke before a search begins
const enough = 30; // rows with which the list reads no older ones by itself
const byItself = 5; // how many times in a row the list reads older ones by itself

/** decided returns a list item with one decision, or with one request of the log. A click unfolds
 * the request. */
export function decided(request) {
  const { decision, logged } = request;
  const agent = [request.agent_name || request.agent, request.project].filter(Boolean).join(" · ");
  const at = when(decision?.decided_at ?? request.created_at), said = outcomeParts(request.text, decision);
  if (logged && said.length === 1) said.push(" · ", at.cloneNode(true)); // the text has no time
  const item = el("li", `decided ${logged ? "logged" : `risk-${riskClass(request.risk)}`}`, fold(
    [icon(request), el("span", "covers", request.summary), el("span", `outcome ${decision?.outcome ?? "none"}`, ...said)],
    el("p", "meta", ...logged ? [] : [risk(request)], el("span", "", agent), sessionLink(request.session_id, request.session_label), at),
    parts(request)));
  item.dataset.id = request.pending_id;
  return item;
}

/** Listed has the requests of a list, because the log may have one twice. An agent may use an id and a
 * time again, so each content and each decision is a row of its own. */
export class Listed {
  #rows = new Set();

  /** add reports whether a request is a new row. A question without a decision is none after a row
   * with the same question. */
  add(request) {
    const { decision } = request;
    const question = `${keyOf(request)} ${request.created_at} ${request.digest}`;
    const row = decision ? `${question} ${decision.outcome} ${decision.decided_at}` : question;
    const isNew = !this.#rows.has(row);
    this.#rows.add(row).add(question);
    return isNew;
  }

  clear() {
    this.#rows.clear();
  }
}

/** fromLog returns the list item that stands before the requests of the log. */
export const fromLog = () => el("li", "hint from-log", "From the log. Nothing can be decided or undone here.");

/** reachText returns how far a reply of the history goes back, or where the log begins. */
export function reachText({ next, reach }, verb = "Back") {
  if (!next) return reach?.begins ? ["The log begins on ", when(reach.begins), "."] : ["The log is empty."];
  return reach?.reached ? [`${verb} to `, when(reach.reached), "."] : [];
}

/** <nod-history> lists decisions, newest first. The app sets the property ask to a function that
 * sends a request to nod. */
export class History extends HTMLElement {
  #list = el("ol", "rows");
  #status = el("p", "total");
  #search = el("input");
  #outcome = el("select");
  #older = el("button", "", "Older");
  #reach = el("span");
  #end = el("p", "older", this.#reach, this.#older);
  #timer = 0;
  #loads = 0;
  #reading = 0; // the load that reads older requests now, or 0
  #next = ""; // asks for the requests before those of the list; empty at the beginning of the log
  #listed = new Listed();
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
      el("p", "hint", "Decisions by people and by rules, as far back as the log. Requests without an id that a rule decided at once are not listed: nod log search finds them."),
      filters, this.#status, this.#list, this.#end);
    this.#reach.setAttribute("role", "status");
    this.#older.type = "button";
    this.#older.addEventListener("click", () => this.#goOn(this.#loads, 1));
    this.#end.hidden = true;
  }

  /** focusSearch puts the focus in the search field. */
  focusSearch() {
    this.#search.focus();
  }

  async load() {
    const load = ++this.#loads;
    try {
      const reply = await this.#asks("");
      if (load !== this.#loads) return; // a newer search has begun
      this.#list.replaceChildren();
      this.#listed.clear();
      this.#append(reply);
      this.#showEnd(reply);
      await this.#goOn(load, this.#list.childElementCount < enough ? byItself : 0);
    } catch (failure) {
      if (failure && load === this.#loads) this.#status.textContent = failure.message;
    }
  }

  #asks(before) {
    return this.ask("permissions.history", { query: this.#search.value.trim(), outcome: this.#outcome.value, before });
  }

  // Adds older requests below the list, in up to so many steps, until it has some more rows.
  async #goOn(load, steps) {
    const rows = this.#list.childElementCount;
    for (; steps > 0 && this.#next && this.#list.childElementCount < rows + enough; steps--) {
      if (this.#reading === load) return;
      this.#reading = load;
      this.#older.textContent = "Reading the log …";
      try {
        const reply = await this.#asks(this.#next);
        if (load !== this.#loads) return;
        this.#append(reply);
        this.#showEnd(reply);
      } catch (failure) {
        if (load !== this.#loads) return;
        this.#older.textContent = "Try again";
        if (failure) this.#reach.textContent = `Older requests were not read: ${failure.message}`;
        return;
      } finally {
        if (this.#reading === load) this.#reading = 0;
      }
    }
  }

  #append({ permissions, next = "" }) {
    this.#next = next;
    for (const request of permissions) {
      if (!this.#listed.add(request)) continue;
      if (request.logged && !this.#list.querySelector(".from-log")) {
        this.#list.append(fromLog());
      }
      this.#list.append(decided(request));
    }
  }

  // Says how far the list goes back, and whether it goes on.
  #showEnd(reply) {
    const none = !this.#list.childElementCount;
    this.#end.hidden = false;
    this.#older.hidden = !this.#next;
    this.#older.textContent = this.#filtered ? "Search further back" : "Older";
    this.#reach.replaceChildren(...reachText(reply, this.#filtered ? "Searched back" : "Back"));
    this.#status.textContent = !none ? "" : this.#next ? this.#filtered ? "No decision matches so far." : "" : this.#filtered ? "No decision matches." : "Nothing was decided.";
  }

  get #filtered() {
    return this.#search.value.trim() !== "" || this.#outcome.value !== "";
  }

  /** decided adds a new decision at the top. */
  decided(request) {
    if (this.#filtered) return; // the next search finds it
    this.#listed.add(request);
    this.#list.prepend(decided(request));
    this.#status.textContent = "";
  }
}

customElements.define("nod-history", History);

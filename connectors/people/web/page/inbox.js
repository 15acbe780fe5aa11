// The list of pending requests, oldest first.

import { captionOf, clock, el, keyOf, sessionLink, times } from "./parts.js";

/** <nod-inbox> lists requests. A click on a row fires the event "review" with the request. Rows
 * have no answer buttons: in a list that moves, a click could hit the wrong row. */
export class Inbox extends HTMLElement {
  #rows = new Map(); // by key
  #list = el("ul", "rows");
  #total = el("p", "total");
  #search = el("input");
  #risk = el("select");

  connectedCallback() {
    if (this.firstChild) return; // the element was attached to the page before
    this.#total.setAttribute("role", "status");
    Object.assign(this.#search, { type: "search", placeholder: "agent, session or text" });
    this.#risk.append(new Option("any risk", ""), new Option("high risk", "high"), new Option("medium risk", "medium"), new Option("low risk", "low"));
    const filters = el("form", "filters", el("label", "", "Show ", this.#search), el("label", "", "of ", this.#risk));
    filters.setAttribute("role", "search");
    filters.addEventListener("submit", (e) => e.preventDefault());
    filters.addEventListener("input", () => this.#filter());
    this.replaceChildren(el("h2", "", "Inbox"), filters, this.#total, this.#list);
    this.addEventListener("keydown", (e) => this.#move(e));
    this.#count();
  }

  clear() {
    this.#rows.clear();
    this.#list.replaceChildren();
    this.#count();
  }

  add(request) {
    const key = keyOf(request), old = this.#rows.get(key);
    const focused = Boolean(old?.contains(document.activeElement));
    old?.remove();
    const open = el("button", "row",
      el("span", "covers", request.summary),
      captionOf(request),
      el("span", "meta", ...times(request),
        clock("since", request.created_at), clock("until", request.deadline)));
    open.type = "button";
    open.addEventListener("click", () => this.dispatchEvent(new CustomEvent("review", { detail: request })));
    const row = el("li", "", open, el("span", "place", "in session ", sessionLink(request.session_id)));
    row.dataset.at = request.created_at;
    row.dataset.id = request.pending_id;
    row.dataset.risk = request.risk;
    row.dataset.words = `${request.summary} ${request.agent} ${request.session_id} ${request.tool_name ?? ""}`.toLowerCase();
    this.#hide(row);
    // Search from the end, because most new requests belong there.
    let after = this.#list.lastElementChild;
    while (after && Date.parse(after.dataset.at) > Date.parse(request.created_at)) after = after.previousElementSibling;
    if (after) after.after(row);
    else this.#list.prepend(row);
    this.#rows.set(key, row);
    if (focused) open.focus();
    this.#count();
  }

  drop(key) {
    const row = this.#rows.get(key);
    if (!row) return;
    const focused = row.contains(document.activeElement);
    const next = beside(row, "nextElementSibling") ?? beside(row, "previousElementSibling");
    row.remove();
    this.#rows.delete(key);
    this.#count();
    if (focused) next?.querySelector("button").focus();
  }

  /** focusOn moves the focus to the row of a request. If that row is gone, it uses the first
   * row. */
  focusOn(key) {
    const row = this.#rows.get(key) ?? this.#list.querySelector("li:not([hidden])");
    row?.querySelector("button").focus();
  }

  #hide(row) {
    const words = this.#search.value.trim().toLowerCase(), risk = this.#risk.value;
    row.hidden = !row.dataset.words.includes(words) || Boolean(risk) && row.dataset.risk !== risk;
  }

  #filter() {
    for (const row of this.#rows.values()) this.#hide(row);
    this.#count();
  }

  #count() {
    const n = this.#rows.size;
    const shown = this.#list.querySelectorAll("li:not([hidden])").length;
    const words = n === 0 ? "Nothing waits for an answer." : n === 1 ? "1 request waits." : `${n} requests wait.`;
    this.#total.textContent = shown === n ? words : `${words} ${shown} of them shown.`;
  }

  #move(e) {
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[e.key];
    const row = step && e.target.closest("li");
    const next = row && beside(row, step);
    if (!next) return;
    e.preventDefault();
    next.querySelector("button").focus();
  }
}

// The nearest visible row before or after a row.
function beside(row, step) {
  let next = row[step];
  while (next?.hidden) next = next[step];
  return next;
}

customElements.define("nod-inbox", Inbox);

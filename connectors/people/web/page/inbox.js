// The list of all that waits, oldest first.

import { clock, el, keyOf, risk } from "./parts.js";

/** <nod-inbox> lists requests. A row only opens its request: nothing is decided
 * from a list that moves. It fires "review" with the request. */
export class Inbox extends HTMLElement {
  #rows = new Map(); // by key
  #list = el("ul", "rows");
  #total = el("p", "total");

  connectedCallback() {
    this.#total.setAttribute("role", "status");
    this.replaceChildren(this.#total, this.#list);
    this.addEventListener("keydown", (e) => this.#move(e));
    this.#count();
  }

  get size() {
    return this.#rows.size;
  }

  clear() {
    this.#rows.clear();
    this.#list.replaceChildren();
    this.#count();
  }

  add(request) {
    const key = keyOf(request);
    this.#rows.get(key)?.remove();
    const open = el("button", "row",
      el("span", "what", request.summary),
      el("span", "meta", risk(request), el("span", "", request.agent), el("span", "", request.session_id),
        clock("since", request.created_at), clock("until", request.deadline)));
    open.type = "button";
    open.addEventListener("click", () => this.dispatchEvent(new CustomEvent("review", { detail: request })));
    const row = el("li", "", open);
    row.dataset.at = request.created_at;
    row.dataset.id = request.pending_id;
    // Most come last.
    let after = this.#list.lastElementChild;
    while (after && Date.parse(after.dataset.at) > Date.parse(request.created_at)) after = after.previousElementSibling;
    if (after) after.after(row);
    else this.#list.prepend(row);
    this.#rows.set(key, row);
    this.#count();
  }

  drop(key) {
    const row = this.#rows.get(key);
    if (!row) return;
    const focused = row.contains(document.activeElement);
    const next = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    this.#rows.delete(key);
    this.#count();
    if (focused) next?.querySelector("button").focus();
  }

  /** focusOn puts the focus back on a request's row, or on the first. */
  focusOn(key) {
    const row = this.#rows.get(key) ?? this.#list.firstElementChild;
    row?.querySelector("button").focus();
  }

  #count() {
    const n = this.#rows.size;
    this.#total.textContent = n === 0 ? "Nothing waits for an answer." : n === 1 ? "1 request waits." : `${n} requests wait.`;
    this.dispatchEvent(new Event("count"));
  }

  #move(e) {
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[e.key];
    const row = step && e.target.closest("li")?.[step];
    if (!row) return;
    e.preventDefault();
    row.querySelector("button").focus();
  }
}

customElements.define("nod-inbox", Inbox);

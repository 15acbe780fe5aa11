// The list of pending requests.

import { icon } from "./icons.js";
import { captionOf, clock, el, keyOf, riskClass, sessionLink, times } from "./parts.js";

const orders = [["by session", "session"], ["oldest first", "age"], ["highest risk first", "risk"]];
const ranks = { high: 0, unknown: 0, medium: 1, low: 2 };
const byAge = (a, b) => a.dataset.at - b.dataset.at;
const compare = { session: byAge, age: byAge, risk: (a, b) => ranks[a.dataset.risk] - ranks[b.dataset.risk] || byAge(a, b) };

/** <nod-inbox> lists requests. A click on a row fires the event "review" with the request. Rows
 * have no answer buttons: in a list that moves, a click could hit the wrong row. */
export class Inbox extends HTMLElement {
  #requests = new Map(); // by key
  #rows = new Map(); // by key
  #groups = new Map(); // by session; by "" if the list has no groups
  #shown = 0; // number of rows that the filters do not hide
  #list = el("ul", "groups");
  #total = el("p", "total");
  #search = el("input");
  #risk = el("select");
  #order = el("select");
  #unlisted = 0; // number of pending requests that the page has not got
  #more = el("button", "more", "List more");
  #blank = el("div", "blank", el("p", "", "Nothing waits for an answer."),
    el("p", "explains", "If a rule does not settle a call of an agent, the call appears here. Leave this page open: it updates by itself."));

  connectedCallback() {
    if (this.firstChild) return; // the element was attached to the page before
    this.#total.setAttribute("role", "status");
    Object.assign(this.#search, { type: "search", placeholder: "Search" });
    this.#search.setAttribute("aria-label", "Search by agent, session, project or text");
    this.#risk.append(new Option("any risk", ""), new Option("high risk", "high"), new Option("medium risk", "medium"), new Option("low risk", "low"));
    this.#risk.setAttribute("aria-label", "Risk");
    for (const [words, value] of orders) this.#order.append(new Option(words, value));
    this.#order.setAttribute("aria-label", "Order");
    this.#order.value = localStorage.getItem("order") ?? "session";
    if (this.#order.selectedIndex < 0) this.#order.value = "session";
    const filters = el("form", "filters", this.#search, this.#risk, this.#order);
    filters.setAttribute("role", "search");
    filters.addEventListener("submit", (e) => e.preventDefault());
    filters.addEventListener("input", () => this.#filter());
    this.#order.addEventListener("change", () => this.#reorder());
    this.replaceChildren(el("h2", "unseen", "Inbox"), filters, this.#total, this.#list, this.#more, this.#blank);
    this.#more.type = "button";
    this.#more.addEventListener("click", () => this.dispatchEvent(new Event("more")));
    this.addEventListener("keydown", (e) => this.#move(e));
    this.#count();
  }

  clear() {
    this.#requests.clear();
    this.#rows.clear();
    this.#groups.clear();
    this.#shown = 0;
    this.#list.replaceChildren();
    this.#count();
  }

  /** unlisted is the number of pending requests beyond those of the list. */
  set unlisted(n) {
    this.#unlisted = n;
    this.#count();
  }

  add(request) {
    const key = keyOf(request), old = this.#rows.get(key);
    const focused = Boolean(old?.contains(document.activeElement)), current = old?.classList.contains("current");
    if (old) this.#remove(old);
    const row = this.#row(request);
    row.classList.toggle("current", Boolean(current));
    this.#requests.set(key, request);
    this.#rows.set(key, row);
    this.#insert(this.#group(request), row);
    this.#hide(row);
    if (!row.hidden) this.#shown++;
    this.#countGroup(row.parentElement);
    if (focused) row.firstElementChild.focus();
    this.#count();
  }

  drop(key) {
    const row = this.#rows.get(key);
    if (!row) return;
    const focused = row.contains(document.activeElement);
    const next = this.#beside(row, 1) ?? this.#beside(row, -1);
    const group = row.parentElement;
    this.#remove(row);
    this.#rows.delete(key);
    this.#requests.delete(key);
    if (group.firstChild) this.#countGroup(group);
    else this.#dropGroup(group);
    this.#count();
    if (focused) next?.firstElementChild.focus();
  }

  /** focusOn moves the focus to the row of a request. If that row is gone, it uses the first
   * row. */
  focusOn(key) {
    (this.#rows.get(key) ?? this.#visible()[0])?.firstElementChild.focus();
  }

  /** focusSearch puts the focus in the search field. */
  focusSearch() {
    this.#search.focus();
  }

  /** mark shows which request is open. */
  mark(key) {
    for (const [k, row] of this.#rows) row.classList.toggle("current", k === key);
    this.#rows.get(key)?.scrollIntoView({ block: "nearest" });
  }

  /** beside returns the request that is listed step rows after the request with this key;
   * without such a key the first one, and null if there is none. */
  beside(key, step) {
    const row = this.#rows.get(key);
    const other = row ? this.#beside(row, step) : this.#visible()[0];
    return other ? this.#requests.get(other.dataset.key) : null;
  }

  /** after returns the request that is listed next after the one with this key, or else the
   * last one before it; null if there is none. It leaves out the keys in except. */
  after(key, except) {
    const all = this.#visible().filter((row) => row.dataset.key === key || !except.has(row.dataset.key));
    const at = all.findIndex((row) => row.dataset.key === key);
    const row = at < 0 ? all[0] : all[at + 1] ?? all[at - 1];
    return row && !except.has(row.dataset.key) ? this.#requests.get(row.dataset.key) : null;
  }

  #row(request) {
    const meta = el("span", "meta", ...times(request), clock("since", request.created_at), ...deadlineSoon(request) ? [clock("until", request.deadline)] : []);
    const open = el("button", "row", icon(request), el("span", "covers", request.summary), captionOf(request), meta);
    open.type = "button";
    open.addEventListener("click", () => this.dispatchEvent(new CustomEvent("review", { detail: request })));
    const row = el("li", `risk-${riskClass(request.risk)}`, open);
    Object.assign(row.dataset, {
      key: keyOf(request), id: request.pending_id, at: Date.parse(request.created_at), risk: riskClass(request.risk),
      words: [request.summary, request.agent, request.agent_name, request.project, request.session_label, request.session_id, request.tool_name].join(" ").toLowerCase(),
    });
    return row;
  }

  // Returns the list of the rows of a request's session, or of all rows if the order has no
  // groups. A new session comes last, so that rows above it stay in their places.
  #group(request) {
    const grouped = this.#order.value === "session", id = grouped ? request.session_id : "";
    this.classList.toggle("grouped", grouped);
    let group = this.#groups.get(id);
    if (group) return group;
    group = el("ul", "rows");
    const item = el("li", "group", ...grouped ? [this.#head(request)] : [], group);
    item.dataset.session = id;
    this.#groups.set(id, group);
    this.#list.append(item);
    return group;
  }

  #head(request) {
    const count = el("span", "count");
    return el("div", "head", sessionLink(request.session_id, request.session_label),
      el("span", "", [request.agent_name || request.agent, request.project].filter(Boolean).join(" · ")), count);
  }

  #dropGroup(group) {
    this.#groups.delete(group.parentElement.dataset.session);
    group.parentElement.remove();
  }

  // The search for the place starts at the end, because most requests belong there.
  #insert(group, row) {
    const order = compare[this.#order.value];
    let after = group.lastElementChild;
    while (after && order(after, row) > 0) after = after.previousElementSibling;
    if (after) after.after(row);
    else group.prepend(row);
  }

  #reorder() {
    localStorage.setItem("order", this.#order.value);
    const all = [...this.#requests.values()].sort((a, b) => Date.parse(a.created_at) - Date.parse(b.created_at));
    const current = this.#list.querySelector(".current")?.dataset.key;
    this.clear();
    for (const request of all) this.add(request);
    this.mark(current);
  }

  #hide(row) {
    const words = this.#search.value.trim().toLowerCase(), risk = this.#risk.value;
    row.hidden = !row.dataset.words.includes(words) || Boolean(risk) && row.dataset.risk !== risk;
  }

  #filter() {
    for (const row of this.#rows.values()) this.#hide(row);
    this.#shown = this.#visible().length;
    for (const group of this.#groups.values()) this.#countGroup(group);
    this.#count();
  }

  #visible() {
    return [...this.#list.querySelectorAll("li[data-key]:not([hidden])")];
  }

  #beside(row, step) {
    const all = this.#visible();
    return all[all.indexOf(row) + step];
  }

  #remove(row) {
    if (!row.hidden) this.#shown--;
    row.remove();
  }

  #countGroup(group) {
    group.parentElement.hidden = !group.querySelector(":scope > li:not([hidden])");
    const count = group.parentElement.querySelector(".head .count");
    if (count) count.textContent = group.childElementCount;
  }

  #count() {
    const listed = this.#rows.size, n = listed + this.#unlisted, shown = this.#shown;
    const words = n === 0 ? "Nothing waits for an answer." : n === 1 ? "1 request waits." : `${n} requests wait.`;
    const part = this.#unlisted ? ` ${listed} of them are listed.` : "";
    this.#total.textContent = shown === listed ? words + part : `${words}${part} ${shown} of them shown.`;
    this.#blank.hidden = n > 0;
    this.#more.hidden = this.#unlisted === 0;
    this.#total.classList.toggle("unseen", n === 0); // the text of the empty list says the same
  }

  #move(e) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    const row = step && e.target.closest("li[data-key]");
    const next = row && this.#beside(row, step);
    if (!next) return;
    e.preventDefault();
    next.firstElementChild.focus();
  }
}

// A deadline of more than a day is shown with the request, not in the list.
const deadlineSoon = ({ created_at, deadline }) => Date.parse(deadline) - Date.parse(created_at) <= 86_400_000;

customElements.define("nod-inbox", Inbox);

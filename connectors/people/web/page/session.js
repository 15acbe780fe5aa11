// The page of one session: its requests in order, each answered where it stands.

import "./answer.js";
import { clock, el, keyOf, parts, risk, times } from "./parts.js";
import { decided } from "./history.js";

/** <nod-session> is a session's timeline. A pending request is a card with the whole
 * request and its buttons; later the outcome replaces the buttons. The app sets ask, which
 * sends a request to nod. */
export class Session extends HTMLElement {
  #cards = new Map(); // pending requests, by key: {item, panel}
  #keys = new Set(); // the keys of all requests shown
  #title = el("h2");
  #lock = el("p", "hint");
  #runs = el("p", "hint runs"); // the sum of the contained runs; hidden if there are none
  #status = el("p", "total");
  #list = el("ol", "rows timeline");
  #online = true;
  #loads = 0;
  #loading = false;
  #queued = []; // decisions that arrive while the history loads
  #id = "";
  #agent = "";
  ask = null;

  connectedCallback() {
    this.#lock.setAttribute("role", "status");
    this.#status.setAttribute("role", "status");
    this.replaceChildren(this.#title, this.#lock, this.#runs, this.#status, this.#list);
  }

  /** load shows a session: its history, then the requests that pending() returns. */
  async load(id, pending) {
    const load = ++this.#loads;
    this.clear();
    this.#id = id;
    this.#agent = "";
    this.#loading = true;
    this.#queued = [];
    this.#title.textContent = `Session ${id}`;
    try {
      const reply = await this.ask("permissions.history", { session_id: id });
      if (load !== this.#loads) return; // another session was opened meanwhile
      this.clear();
      this.#runs.textContent = reply.runs ? `Ran contained: ${reply.runs}.` : "";
      this.#runs.hidden = !reply.runs;
      this.#append([...reply.permissions.reverse(), ...this.#queued]);
      this.#show(pending());
    } catch (failure) {
      if (!failure || load !== this.#loads) return; // the connection ended; load is called again
      this.#show(pending());
      this.#status.textContent = `${failure.message} Earlier decisions are not shown.`;
    }
  }

  // Adds those decisions that are not shown yet.
  #append(all) {
    for (const request of all) {
      const key = keyOf(request);
      if (this.#keys.has(key)) continue;
      this.#keys.add(key);
      this.#setAgent(request);
      this.#list.append(decided(request));
    }
  }

  #show(pending) {
    this.#loading = false;
    for (const request of pending) this.add(request);
    this.#count();
  }

  /** clear removes all requests, because they may be out of date. */
  clear() {
    this.#cards.clear();
    this.#keys.clear();
    this.#list.replaceChildren();
    this.#runs.textContent = "";
    this.#runs.hidden = true;
  }

  /** add shows a pending request, or a new version of it, if it is of this session. */
  add(request) {
    const key = keyOf(request);
    if (request.session_id !== this.#id || this.#loading) return;
    if (this.#keys.has(key)) {
      this.#updateWaiters(key, request);
      return;
    }
    this.#keys.add(key);
    this.#setAgent(request);
    const start = el("div", "end"), end = el("div", "end");
    const panel = document.createElement("nod-answer");
    const title = el("h3", "unseen", request.summary);
    title.id = `title-${request.pending_id}`;
    const item = el("li", "card", el("article", "",
      el("header", "", title, el("span", "meta", risk(request), ...times(request), clock("since", request.created_at), clock("until", request.deadline))),
      start, parts(request, end), panel));
    item.firstElementChild.setAttribute("aria-labelledby", title.id);
    item.dataset.id = request.pending_id;
    this.#list.append(item);
    panel.open({ request, ends: [start, end] });
    panel.online = this.#online;
    this.#cards.set(key, { item, panel, end });
    this.#rearm();
  }

  // Shows a new version of a request in its card.
  #updateWaiters(key, request) {
    const card = this.#cards.get(key);
    if (!card) return; // the request has ended
    card.item.querySelector(".parts").replaceWith(parts(request, card.end));
    card.panel.updateWaiters(request);
    this.#rearm();
  }

  // Stores the session's agent, which the first request names, and fires "agent" with it.
  #setAgent({ agent }) {
    if (this.#agent) return;
    this.#agent = agent;
    this.dispatchEvent(new CustomEvent("agent", { detail: agent }));
  }

  /** decided replaces a card's buttons by the outcome, or adds a request that a rule
   * decided. */
  decided(request) {
    const key = keyOf(request), card = this.#cards.get(key);
    if (request.session_id !== this.#id) return;
    if (this.#loading) {
      this.#queued.push(request);
      return;
    }
    if (!card) {
      this.#append([request]);
      this.#rearm();
      return;
    }
    this.#cards.delete(key);
    const clocks = card.item.querySelector(".meta");
    clocks.replaceChildren(clocks.firstElementChild);
    if (card.panel.ended(request.text)) {
      card.item.tabIndex = -1;
      card.item.focus();
    }
    this.#rearm();
  }

  // Makes all buttons inactive for a moment, because cards have moved.
  #rearm() {
    for (const { panel } of this.#cards.values()) panel.arm();
    this.#count();
  }

  #count() {
    const n = this.#cards.size;
    this.#status.textContent = n === 0 ? "Nothing waits for an answer." : n === 1 ? "1 request waits." : `${n} requests wait.`;
  }

  /** lock shows the state of the session's input lock, {granted, holder}. Null hides it. */
  set lock(lock) {
    let words = "";
    if (lock?.granted) words = "You have the input lock: this session's requests go to you first, for a short time.";
    else if (lock?.holder) words = `${lock.holder} has the input lock.`;
    else if (lock) words = "You were inactive for a while, so the input lock was released.";
    if (this.#lock.textContent !== words) this.#lock.textContent = words;
  }

  set online(yes) {
    this.#online = yes;
    for (const { panel } of this.#cards.values()) panel.online = yes;
  }
}

customElements.define("nod-session", Session);

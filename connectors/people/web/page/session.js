// The page of one session. It lists the session's requests in order, each with its own answer buttons.

import "./answer.js";
import { clock, el, keyOf, parts, riskClass, times } from "./parts.js";
import { decided, fromLog, Listed, reachText } from "./history.js";

/** <nod-session> is the list of a session's requests. A pending request is a card with the whole
 * request and its buttons. When the request ends, the outcome replaces the buttons. The app sets
 * the property ask to a function that sends a request to nod. */
export class Session extends HTMLElement {
  #cards = new Map(); // pending requests, by key: {item, panel}
  #listed = new Listed(); // the ended requests on the page
  #title = el("h2");
  #lock = el("p", "hint");
  #runs = el("p", "hint runs"); // the sum of the contained runs; hidden if there are none
  #status = el("p", "total");
  #older = el("button", "", "Older");
  #reach = el("span");
  #start = el("p", "older", this.#reach, this.#older); // above the list: how far it goes back
  #fromLog = fromLog();
  #next = ""; // asks for the requests before those of the list; empty at the beginning of the log
  #reading = 0; // the load that reads older requests now, or 0
  #list = el("ol", "rows timeline");
  #all = el("p", "actions all"); // answers all pending requests alike
  #online = true;
  #loads = 0;
  #loading = false;
  #queued = []; // decisions that arrive while the history is loading
  #id = "";
  #agent = "";
  ask = null;

  connectedCallback() {
    this.#lock.setAttribute("role", "status");
    this.#status.setAttribute("role", "status");
    this.#reach.setAttribute("role", "status");
    this.#older.type = "button";
    this.#older.addEventListener("click", () => this.#goBack());
    this.#start.hidden = true;
    this.#all.hidden = true;
    this.#all.replaceChildren(this.#together("deny", "Deny all"), this.#together("allow", "Allow all once"));
    this.#list.addEventListener("ready", () => this.#updateAll());
    this.replaceChildren(this.#title, this.#lock, this.#runs, this.#status, this.#start, this.#list, this.#all);
  }

  /** load shows a session: first its history, then the requests that the function pending
   * returns. */
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
      if (load !== this.#loads) return; // another session has been opened in the meantime
      this.clear();
      this.#runs.textContent = reply.runs ? `Ran contained: ${reply.runs}.` : "";
      this.#runs.hidden = !reply.runs;
      this.#append([...reply.permissions.reverse(), ...this.#queued]);
      this.#show(pending());
      this.#showStart(reply);
      if (!this.#list.childElementCount) await this.#goBack();
    } catch (failure) {
      if (!failure || load !== this.#loads) return; // the connection has ended, so the app calls load again
      this.#show(pending());
      this.#status.textContent = `${failure.message} Earlier decisions are not shown.`;
    }
  }

  // Adds the decisions that are not on the page yet.
  #append(all) {
    for (const request of all) {
      if (!this.#listed.add(request)) continue;
      this.#setAgent(request);
      this.#list.append(decided(request));
    }
  }

  // Reads the next older requests and puts them above the others.
  async #goBack() {
    const load = this.#loads;
    if (!this.#next || this.#reading === load) return;
    this.#reading = load;
    this.#older.textContent = "Reading the log …";
    try {
      const reply = await this.ask("permissions.history", { session_id: this.#id, before: this.#next });
      if (load !== this.#loads) return;
      this.#prepend(reply.permissions);
      this.#showStart(reply);
    } catch (failure) {
      if (load !== this.#loads) return;
      this.#older.textContent = "Try again";
      if (failure) this.#reach.textContent = `Older requests were not read: ${failure.message}`;
    } finally {
      if (this.#reading === load) this.#reading = 0;
    }
  }

  #prepend(newestFirst) {
    for (const request of newestFirst) {
      if (!this.#listed.add(request)) continue;
      this.#setAgent(request);
      this.#fromLog.remove();
      this.#list.prepend(...request.logged ? [this.#fromLog] : [], decided(request));
    }
    this.#rearm();
  }

  #showStart(reply) {
    this.#next = reply.next ?? "";
    this.#start.hidden = false;
    this.#older.hidden = !this.#next;
    this.#older.textContent = "Older";
    this.#reach.replaceChildren(...reachText(reply));
  }

  #show(pending) {
    this.#loading = false;
    for (const request of pending) this.add(request);
    this.#count();
  }

  /** clear removes all requests, because they may be out of date. */
  clear() {
    this.#cards.clear();
    this.#listed.clear();
    this.#next = "";
    this.#start.hidden = true;
    this.#list.replaceChildren();
    this.#runs.textContent = "";
    this.#runs.hidden = true;
  }

  /** add shows a pending request or a new version of it. It ignores requests of other sessions. */
  add(request) {
    const key = keyOf(request);
    if (request.session_id !== this.#id || this.#loading) return;
    if (!this.#listed.add(request)) {
      this.#updateWaiters(key, request);
      return;
    }
    this.#setAgent(request);
    const start = el("div", "end"), end = el("div", "end");
    const panel = document.createElement("nod-answer");
    panel.ask = this.ask;
    const title = el("h3", "unseen", request.summary);
    title.id = `title-${request.pending_id}`;
    const item = el("li", `card risk-${riskClass(request.risk)}`, el("article", "",
      el("header", "", title, el("span", "meta", ...times(request), clock("since", request.created_at), clock("until", request.deadline))),
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

  // Stores the agent of the session from its first request, and fires the event "agent".
  #setAgent({ agent }) {
    if (this.#agent) return;
    this.#agent = agent;
    this.dispatchEvent(new CustomEvent("agent", { detail: agent }));
  }

  /** decided replaces the buttons of a card by the outcome. For a request that a rule decided,
   * it adds the request. */
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
    this.#listed.add(request);
    const clocks = card.item.querySelector(".meta");
    clocks.replaceChildren(clocks.firstElementChild);
    if (card.panel.ended(request.text, request.decision)) {
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

  // A button that answers all pending requests alike. The first press asks again. Each card
  // must take the answer: to allow, each request must have been in view to its end.
  #together(effect, words) {
    const button = el("button", effect, words);
    button.type = "button";
    button.dataset.words = words;
    button.addEventListener("click", () => {
      const cards = [...this.#cards.values()];
      if (!cards.length || !cards.every(({ panel }) => panel.can(effect))) return;
      if (button.dataset.sure !== String(cards.length)) {
        button.dataset.sure = cards.length;
        button.textContent = `Sure? ${words} (${cards.length})`;
        for (const { panel } of cards) panel.arm(); // the second click of a double click has no effect
        return;
      }
      for (const { panel } of cards) panel.press(effect);
    });
    button.addEventListener("blur", () => this.#unsure(button));
    return button;
  }

  #unsure(button) {
    delete button.dataset.sure;
    button.textContent = button.dataset.words;
  }

  #updateAll() {
    this.#all.hidden = this.#cards.size < 2;
    for (const button of this.#all.children) {
      const effect = button.classList.contains("allow") ? "allow" : "deny";
      const can = [...this.#cards.values()].every(({ panel }) => panel.can(effect));
      button.setAttribute("aria-disabled", String(!can));
      button.title = can || effect === "deny" ? "" : "Read each request to its end first.";
    }
  }

  #count() {
    const n = this.#cards.size;
    for (const button of this.#all.children) this.#unsure(button);
    this.#updateAll();
    this.#status.textContent = n === 0 ? "Nothing waits for an answer." : n === 1 ? "1 request waits." : `${n} requests wait.`;
  }

  /** lock shows the state of the session's input lock, {granted, holder}. null hides it. */
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

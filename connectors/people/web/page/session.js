// One session: what it asked, in order, and the answers, in place.

import "./answer.js";
import { clock, el, keyOf, parts, risk, times } from "./parts.js";
import { decided } from "./history.js";

/** <nod-session> is a session's timeline. What waits stands there whole with
 * its buttons, and how it ended takes their place. ask asks nod. */
export class Session extends HTMLElement {
  #cards = new Map(); // what waits, by key: {item, panel}
  #known = new Set(); // the keys of all that stands here
  #title = el("h2");
  #lock = el("p", "hint");
  #note = el("p", "total");
  #list = el("ol", "rows timeline");
  #online = true;
  #turn = 0;
  #loading = false;
  #late = []; // decided while the history was on its way
  #id = "";
  #agent = "";
  ask = null;

  connectedCallback() {
    this.#lock.setAttribute("role", "status");
    this.#note.setAttribute("role", "status");
    this.replaceChildren(this.#title, this.#lock, this.#note, this.#list);
  }

  /** load shows a session: what was decided, and what waits of the pending. */
  async load(id, pending) {
    const turn = ++this.#turn;
    this.clear();
    this.#id = id;
    this.#agent = "";
    this.#loading = true;
    this.#late = [];
    this.#title.textContent = `Session ${id}`;
    try {
      const reply = await this.ask("permissions.history", { session_id: id });
      if (turn !== this.#turn) return; // another was asked for meanwhile
      this.clear();
      this.#append([...reply.permissions.reverse(), ...this.#late]);
      this.#show(pending());
    } catch (failure) {
      if (!failure || turn !== this.#turn) return; // the connection ended, and comes again
      this.#show(pending());
      this.#note.textContent = `${failure.message} What was decided before is not shown.`;
    }
  }

  // append adds decisions that are not there yet.
  #append(all) {
    for (const request of all) {
      const key = keyOf(request);
      if (this.#known.has(key)) continue;
      this.#known.add(key);
      this.#whose(request);
      this.#list.append(decided(request));
    }
  }

  #show(pending) {
    this.#loading = false;
    for (const request of pending) this.add(request);
    this.#count();
  }

  /** clear takes everything away: none of it is known to stand. */
  clear() {
    this.#cards.clear();
    this.#known.clear();
    this.#list.replaceChildren();
  }

  /** add shows what waits now. */
  add(request) {
    const key = keyOf(request);
    if (request.session_id !== this.#id || this.#loading) return;
    if (this.#known.has(key)) {
      this.#counts(key, request);
      return;
    }
    this.#known.add(key);
    this.#whose(request);
    const start = el("div", "end"), end = el("div", "end");
    const panel = document.createElement("nod-answer");
    const title = el("h3", "", request.summary);
    title.id = `title-${request.pending_id}`;
    const item = el("li", "card", el("article", "",
      el("header", "", title, el("span", "meta", risk(request), ...times(request), clock("since", request.created_at), clock("until", request.deadline))),
      start, parts(request), end, panel));
    item.firstElementChild.setAttribute("aria-labelledby", title.id);
    item.dataset.id = request.pending_id;
    this.#list.append(item);
    panel.open({ request, ends: [start, end] });
    panel.online = this.#online;
    this.#cards.set(key, { item, panel });
    this.#moved();
  }

  // How many calls a card is about has changed.
  #counts(key, request) {
    const card = this.#cards.get(key);
    if (!card) return; // it has ended
    card.item.querySelector(".parts").replaceWith(parts(request));
    card.panel.counts(request);
    this.#moved();
  }

  // The first request says whose session it is, which "whose" tells.
  #whose({ agent }) {
    if (this.#agent) return;
    this.#agent = agent;
    this.dispatchEvent(new CustomEvent("whose", { detail: agent }));
  }

  /** decided puts how it ended in the place of the buttons, or of what was never
   * asked of anybody to the end. */
  decided(request) {
    const key = keyOf(request), card = this.#cards.get(key);
    if (request.session_id !== this.#id) return;
    if (this.#loading) {
      this.#late.push(request);
      return;
    }
    if (!card) {
      this.#append([request]);
      this.#moved();
      return;
    }
    this.#cards.delete(key);
    const clocks = card.item.querySelector(".meta");
    clocks.replaceChildren(clocks.firstElementChild);
    if (card.panel.ended(request.text)) {
      card.item.tabIndex = -1;
      card.item.focus();
    }
    this.#moved();
  }

  // What stands below has moved: nothing there is meant for a moment.
  #moved() {
    for (const { panel } of this.#cards.values()) panel.arm();
    this.#count();
  }

  #count() {
    const n = this.#cards.size;
    this.#note.textContent = n === 0 ? "Nothing waits for an answer." : n === 1 ? "1 request waits." : `${n} requests wait.`;
  }

  /** lock says who holds the session's input lock. */
  set lock(lock) {
    let words = "";
    if (lock?.granted) words = "You have the input lock: what this session asks waits for you first, and not for long.";
    else if (lock?.holder) words = `${lock.holder} has the input lock.`;
    else if (lock) words = "You have been still for a while, and let go of the input lock.";
    if (this.#lock.textContent !== words) this.#lock.textContent = words;
  }

  set online(yes) {
    this.#online = yes;
    for (const { panel } of this.#cards.values()) panel.online = yes;
  }
}

customElements.define("nod-session", Session);

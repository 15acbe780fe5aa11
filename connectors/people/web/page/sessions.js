// The sessions of all agents.

import { reachText } from "./history.js";
import { clock, el, riskClass, sessionLink } from "./parts.js";

const checkEvery = 5_000, refreshEvery = 60_000; // ms; a reading goes through all requests of a day

/** <nod-sessions> lists the agents' sessions: first those that wait for an answer, then by
 * their newest request. The app sets ask, which sends a request to nod. */
export class Sessions extends HTMLElement {
  #list = el("ul", "rows");
  #past = el("ul", "rows past"); // the sessions of the log
  #sessions = new Map(); // the sessions of the log, by id
  #older = el("button", "", "Older");
  #reach = el("span");
  #end = el("p", "older", this.#reach, this.#older);
  #next = ""; // asks for sessions before those of the list; empty at the beginning of the log
  #status = el("p", "total");
  #timer = 0;
  #loaded = 0; // when the list was read
  #changed = false; // a request has come or ended since
  ask = null;

  connectedCallback() {
    this.#status.setAttribute("role", "status");
    if (!this.firstChild) {
      this.replaceChildren(el("h2", "", "Sessions"), this.#status, this.#list, this.#past, this.#end);
      this.#reach.setAttribute("role", "status");
      this.#older.type = "button";
      this.#older.addEventListener("click", () => this.#goOn());
      this.#end.hidden = true;
    }
    this.#timer = setInterval(() => this.#check(), checkEvery);
  }

  disconnectedCallback() {
    clearInterval(this.#timer);
  }

  #check() {
    if (this.#changed || Date.now() - this.#loaded >= refreshEvery) this.load();
  }

  async load() {
    this.#loaded = Date.now();
    this.#changed = false;
    try {
      const { sessions, next = "" } = await this.ask("sessions.list", {});
      if (this.#end.hidden) this.#showEnd({ next });
      const focused = document.activeElement?.closest?.("nod-sessions li")?.dataset.session;
      this.#list.replaceChildren(...sessions.map(item));
      this.#showPast();
      if (focused) this.querySelector(`li[data-session="${focused}"] a`)?.focus();
      this.#status.textContent = sessions.length ? "" : "No agent has asked in the last 24 hours.";
    } catch (failure) {
      if (failure) this.#status.textContent = failure.message;
    }
  }

  #showEnd(reply) {
    this.#next = reply.next ?? "";
    this.#end.hidden = false;
    this.#older.hidden = !this.#next;
    this.#older.textContent = "Older";
    this.#reach.replaceChildren(...reply.reach ? reachText(reply) : []);
  }

  // Reads a part of the log, and adds its sessions. A session may have requests in several parts.
  async #goOn() {
    this.#older.disabled = true;
    this.#older.textContent = "Reading the log …";
    try {
      const reply = await this.ask("sessions.list", { before: this.#next });
      for (const s of reply.sessions) {
        const known = this.#sessions.get(s.session_id);
        if (known) known.asked += s.asked;
        else this.#sessions.set(s.session_id, s);
      }
      this.#showEnd(reply);
      this.#showPast();
    } catch (failure) {
      this.#older.textContent = "Try again";
      if (failure) this.#reach.textContent = `Older sessions were not read: ${failure.message}`;
    } finally {
      this.#older.disabled = false;
    }
  }

  // Shows the sessions of the log that the list above does not have.
  #showPast() {
    const listed = new Set([...this.#list.children].map((li) => li.dataset.session));
    this.#past.replaceChildren(...[...this.#sessions.values()].filter((s) => !listed.has(s.session_id)).map(item));
  }

  /** add notes that a request has come; the list is read again soon. */
  add() {
    this.#changed = true;
  }

  /** decided notes that a request has ended; the list is read again soon. */
  decided() {
    this.#changed = true;
  }
}

function item(s) {
  const facts = [s.agent_name || s.agent, s.project, s.host].filter(Boolean).join(" · ");
  const counts = [s.state === "past" ? `${s.asked} asked` : `${s.this_hour} asked this hour`, s.holds && `${s.holds} standing`].filter(Boolean).join(" · ");
  const li = el("li", `session-item${s.waiting ? ` risk-${riskClass(s.risk)}` : ""}`,
    el("div", "head", sessionLink(s.session_id, s.session_label), el("span", "", facts), el("span", `status ${s.waiting ? "waits" : ""}`, s.state)),
    el("span", "covers", s.last),
    el("span", "meta", clock("since", s.last_at), el("span", "", counts), el("span", "", s.session_id)));
  li.dataset.session = s.session_id;
  return li;
}

customElements.define("nod-sessions", Sessions);

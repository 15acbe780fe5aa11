// The sessions of all agents.

import { clock, el, riskClass, sessionLink } from "./parts.js";

const checkEvery = 5_000, refreshEvery = 60_000; // ms; a reading goes through all requests of a day

/** <nod-sessions> lists the agents' sessions: first those that wait for an answer, then by
 * their newest request. The app sets ask, which sends a request to nod. */
export class Sessions extends HTMLElement {
  #list = el("ul", "rows");
  #status = el("p", "total");
  #timer = 0;
  #loaded = 0; // when the list was read
  #changed = false; // a request has come or ended since
  ask = null;

  connectedCallback() {
    this.#status.setAttribute("role", "status");
    if (!this.firstChild) this.replaceChildren(el("h2", "", "Sessions"), this.#status, this.#list);
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
      const { sessions } = await this.ask("sessions.list", {});
      const focused = document.activeElement?.closest?.("nod-sessions li")?.dataset.session;
      this.#list.replaceChildren(...sessions.map(item));
      if (focused) this.#list.querySelector(`li[data-session="${focused}"] a`)?.focus();
      this.#status.textContent = sessions.length ? "" : "No agent has asked in the last 24 hours.";
    } catch (failure) {
      if (failure) this.#status.textContent = failure.message;
    }
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
  const counts = [`${s.this_hour} asked this hour`, s.holds && `${s.holds} standing`].filter(Boolean).join(" · ");
  const li = el("li", `session-item${s.waiting ? ` risk-${riskClass(s.risk)}` : ""}`,
    el("div", "head", sessionLink(s.session_id, s.session_label), el("span", "", facts), el("span", `status ${s.waiting ? "waits" : ""}`, s.state)),
    el("span", "covers", s.last),
    el("span", "meta", clock("since", s.last_at), el("span", "", counts), el("span", "", s.session_id)));
  li.dataset.session = s.session_id;
  return li;
}

customElements.define("nod-sessions", Sessions);

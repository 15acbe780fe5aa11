// The page: who is logged in, whether nod is there, what waits, what is open.

import { sync } from "./clock.js";
import "./dialog.js";
import "./inbox.js";
import { Link, login, whoami } from "./link.js";
import { el, keyOf } from "./parts.js";

const lost = "Not confirmed: nod could not be reached. Look at the request again before you answer anew.";

/** <nod-app> is the whole page. */
class App extends HTMLElement {
  #link = new Link();
  #inbox = document.createElement("nod-inbox");
  #dialog = document.createElement("nod-dialog");
  #state = el("p", "state");
  #who = el("span", "who");
  #missing = 0; // how much of what is pending has not arrived yet
  #waits = new Set(); // the keys of what waits

  async connectedCallback() {
    this.#state.setAttribute("role", "status");
    this.replaceChildren(
      el("header", "top", el("h1", "", "nod"), this.#who), this.#state,
      el("main", "", this.#inbox), this.#dialog);
    this.#inbox.addEventListener("review", (e) => this.#dialog.open(e.detail));
    this.#inbox.addEventListener("count", () => this.#count());
    this.#dialog.addEventListener("answer", (e) => this.#answer(e.detail));
    this.#dialog.addEventListener("shut", (e) => this.#inbox.focusOn(e.detail));
    this.#link.addEventListener("up", () => this.#up());
    this.#link.addEventListener("down", (e) => this.#down(e.detail));
    this.#link.addEventListener("out", (e) => this.#out(e.detail));
    this.#link.addEventListener("note", (e) => this.#note(e.detail));
    this.#say("Connecting…");
    const why = await login();
    const who = await whoami();
    if (who.status === 200) {
      this.#who.textContent = who.name;
      this.#link.open();
    } else this.#out(why || who.message);
  }

  #say(text) {
    this.#state.textContent = text;
    this.#state.hidden = !text;
  }

  // What is pending comes anew: nothing that was there before stands.
  async #up() {
    this.#missing = 0;
    this.#inbox.clear();
    this.#waits.clear();
    try {
      const reply = await this.#link.ask("inbox.subscribe");
      this.#missing = reply.pending;
      this.#online(true);
      this.#whole();
    } catch (failure) {
      if (failure) this.#say(failure.message);
    }
  }

  #down(reason) {
    this.#online(false, `Disconnected${reason ? ` (${reason})` : ""}: what you see may be out of date. Trying again…`);
  }

  #out(message) {
    this.#online(false, message);
    this.#inbox.clear();
  }

  #online(yes, text = "") {
    this.#say(text);
    this.#inbox.classList.toggle("stale", !yes);
    this.#inbox.inert = !yes;
    this.#dialog.online = yes;
    this.#count();
  }

  #note({ action, payload }) {
    sync(payload.server_time);
    const key = keyOf(payload);
    switch (action) {
      case "session.permission.requested":
        this.#inbox.add(payload);
        this.#waits.add(key);
        this.#missing--;
        break;
      case "session.permission.resolved":
        this.#inbox.drop(key);
        this.#waits.delete(key);
        if (this.#dialog.shows === key) this.#dialog.ended(payload.text);
        break;
      case "server.time":
        this.#online(payload.reachable, payload.reachable ? "" : "The inbox cannot reach nod: no answer would arrive.");
        break;
    }
    this.#whole();
  }

  // Once all that is pending is here, what is not among it has ended.
  #whole() {
    const open = this.#dialog.shows;
    if (this.#missing <= 0 && open && !this.#waits.has(open)) {
      this.#dialog.gone("This has ended while the page was disconnected. nod show tells how.");
    }
  }

  async #answer({ request, option, message }) {
    const key = keyOf(request);
    const mine = () => this.#dialog.shows === key;
    try {
      const reply = await this.#link.ask("permission.respond", {
        session_id: request.session_id, pending_id: request.pending_id, digest: request.digest,
        option_id: option.option_id, cancelled: false, ...(message && { message }),
      });
      if (mine()) this.#dialog.ended(reply.text);
    } catch (failure) {
      if (!mine()) return;
      if (failure?.details?.decision) this.#dialog.late(failure.text);
      else this.#dialog.failed(failure?.text ?? lost);
    }
  }

  #count() {
    const n = this.#inbox.size;
    document.title = n ? `(${n}) nod` : "nod";
  }
}

customElements.define("nod-app", App);

// The brake: what is frozen, and a button that freezes or thaws everything or, on
// a session's page, that session or its agent.

import { el } from "./parts.js";

const settle = 400; // ms in which a click was meant for what stood there before

/** <nod-brake> says what is frozen. Freezing takes a second click. It is given
 * `ask`, as the other views are. */
export class Brake extends HTMLElement {
  #frozen = [];
  #sure = false;
  #busy = false;
  #since = 0;
  #words = el("span", "frozen");
  #what = el("select");
  #whose = {}; // the session that is looked at, and its agent
  #word = el("input"); // the code word, once nod has said that a thaw takes it
  #button = el("button", "brake");
  #said = el("span", "said");

  connectedCallback() {
    if (this.firstChild) return;
    this.setAttribute("role", "region");
    this.setAttribute("aria-label", "The brake");
    this.#button.type = "button";
    this.#words.setAttribute("role", "status");
    this.#button.addEventListener("click", () => this.#click());
    this.#button.addEventListener("blur", () => this.#step(false));
    this.#what.setAttribute("aria-label", "What the brake is about");
    this.#what.addEventListener("change", () => this.#step(false));
    Object.assign(this.#word, { type: "password", autocomplete: "off", hidden: true });
    this.#word.setAttribute("aria-label", "The code word");
    this.replaceChildren(this.#words, this.#said, this.#what, this.#word, this.#button);
    this.about({});
  }

  /** load asks nod what is frozen. */
  load() {
    this.#do("brake.show");
  }

  /** about offers to freeze a session and its agent alone, as far as they are
   * known. What was chosen stays for the same session. */
  about({ session, agent }) {
    const chosen = session === this.#whose.session ? this.#what.value : "";
    this.#whose = { session, agent };
    this.#what.replaceChildren(new Option("Everything", ""));
    if (session) this.#what.append(new Option(`Session ${session}`, "session"));
    if (agent) this.#what.append(new Option(`Agent ${agent}`, "agent"));
    this.#what.value = chosen;
    if (this.#what.selectedIndex < 0) this.#what.value = "";
    this.#what.hidden = !session;
    if (!this.#what.value) this.#step(false);
  }

  // What is chosen, as nod takes it.
  get #scope() {
    if (this.#what.value === "session") return { session_id: this.#whose.session };
    if (this.#what.value === "agent") return { agent: this.#whose.agent };
    return {};
  }

  // Whether that is frozen: of everything, whether anything is.
  get #on() {
    const { session_id, agent } = this.#scope;
    return this.#frozen.some((z) => !session_id && !agent || z.session_id === session_id && z.agent === agent);
  }

  /** frozen are the freezes: {text, agent, session_id}. */
  set frozen(all) {
    const before = this.#on;
    this.#frozen = all ?? [];
    if (before !== this.#on) this.#step(false);
    this.#show();
  }

  #step(sure) {
    this.#sure = sure;
    this.#since = performance.now();
    this.#show();
  }

  #show() {
    const on = this.#on, all = this.#what.value === "";
    this.classList.toggle("on", this.#frozen.length > 0);
    this.#words.textContent = this.#frozen.map((z) => z.text).join("; ");
    this.#button.textContent = on ? "Thaw" : this.#sure ? `Sure? Deny ${all ? "everything" : `this ${this.#what.value}`}` : "Freeze";
    this.#button.title = on ? "Let agents ask again" : "Deny what is open and whatever is asked, until a thaw. Commands that run already are not stopped.";
  }

  #click() {
    if (this.#busy || performance.now() - this.#since < settle) return;
    if (this.#on) this.#do("brake.thaw");
    else if (this.#sure) this.#do("brake.freeze");
    else this.#step(true);
  }

  async #do(action) {
    this.#busy = true;
    const payload = action === "brake.show" ? {} : this.#scope;
    if (action === "brake.thaw" && this.#word.value) payload.code_word = this.#word.value;
    this.#word.value = "";
    try {
      const reply = await this.ask(action, payload);
      this.#word.hidden = true;
      this.frozen = reply.frozen;
      if (action !== "brake.show") this.#step(false);
      this.#said.textContent = action === "brake.freeze" ? `Open requests denied: ${reply.denied}. ${reply.text ?? ""}`.trim() : "";
    } catch (failure) {
      this.#said.textContent = failure?.text ?? failure?.message ?? "";
      this.#word.hidden = !this.#said.textContent.includes("takes the code word");
      this.#step(false);
    } finally {
      this.#busy = false;
    }
  }
}

customElements.define("nod-brake", Brake);

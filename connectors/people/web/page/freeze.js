// The freeze control shows the freezes. Its button freezes or thaws all agents or, on a session's
// page, only that session or its agent.

import { el } from "./parts.js";

const armDelay = 400; // ms after a change in which clicks have no effect, because the user meant them for the old label

/** <nod-freeze> shows the freezes. A freeze takes two clicks. The app sets the property ask to a
 * function that sends a request to nod. */
export class Freeze extends HTMLElement {
  #frozen = [];
  #sure = false;
  #busy = false;
  #since = 0;
  #text = el("span", "frozen");
  #target = el("select");
  #context = {}; // the open session, and its agent
  #codeWord = el("input"); // hidden until nod refuses a thaw without the code word
  #button = el("button", "freeze");
  #notice = el("span", "notice");

  connectedCallback() {
    if (this.firstChild) return;
    this.setAttribute("role", "region");
    this.setAttribute("aria-label", "Freeze agents");
    this.#button.type = "button";
    this.#text.setAttribute("role", "status");
    this.#button.addEventListener("click", () => this.#click());
    this.#button.addEventListener("blur", () => this.#setSure(false));
    this.#target.setAttribute("aria-label", "What to freeze");
    this.#target.addEventListener("change", () => this.#setSure(false));
    Object.assign(this.#codeWord, { type: "password", autocomplete: "off", hidden: true });
    this.#codeWord.setAttribute("aria-label", "The code word");
    this.replaceChildren(this.#text, this.#notice, this.#target, this.#codeWord, this.#button);
    this.setContext({});
  }

  /** load reads the freezes from nod. */
  load() {
    this.#send("brake.show");
  }

  /** setContext sets the session and the agent that the user can freeze separately; either may
   * be missing. If the session stays the same, the user's choice stays too. */
  setContext({ session, agent }) {
    const chosen = session === this.#context.session ? this.#target.value : "";
    this.#context = { session, agent };
    this.#target.replaceChildren(new Option("Everything", ""));
    if (session) this.#target.append(new Option(`Session ${session}`, "session"));
    if (agent) this.#target.append(new Option(`Agent ${agent}`, "agent"));
    this.#target.value = chosen;
    if (this.#target.selectedIndex < 0) this.#target.value = "";
    this.#target.hidden = !session;
    if (!this.#target.value) this.#setSure(false);
  }

  // The chosen target as fields of a request.
  get #scope() {
    if (this.#target.value === "session") return { session_id: this.#context.session };
    if (this.#target.value === "agent") return { agent: this.#context.agent };
    return {};
  }

  // True if the chosen target is frozen. For "Everything" it is true if there is any freeze.
  get #on() {
    const { session_id, agent } = this.#scope;
    return this.#frozen.some((z) => !session_id && !agent || z.session_id === session_id && z.agent === agent);
  }

  /** frozen sets the freezes to show. Each is {text, agent, session_id}. */
  set frozen(all) {
    const before = this.#on;
    this.#frozen = all ?? [];
    if (before !== this.#on) this.#setSure(false);
    this.#show();
  }

  #setSure(sure) {
    this.#sure = sure;
    this.#since = performance.now();
    this.#show();
  }

  #show() {
    const on = this.#on, all = this.#target.value === "";
    this.classList.toggle("on", this.#frozen.length > 0);
    this.#text.textContent = this.#frozen.map((z) => z.text).join("; ");
    this.#button.textContent = on ? "Thaw" : this.#sure ? `Sure? Deny ${all ? "everything" : `this ${this.#target.value}`}` : "Freeze";
    this.#button.title = on ? "Let agents ask again" : "Deny all pending and new requests until a thaw. Commands that already run are not stopped.";
  }

  #click() {
    if (this.#busy || performance.now() - this.#since < armDelay) return;
    if (this.#on) this.#send("brake.thaw");
    else if (this.#sure) this.#send("brake.freeze");
    else this.#setSure(true);
  }

  async #send(action) {
    this.#busy = true;
    const payload = action === "brake.show" ? {} : this.#scope;
    if (action === "brake.thaw" && this.#codeWord.value) payload.code_word = this.#codeWord.value;
    this.#codeWord.value = "";
    try {
      const reply = await this.ask(action, payload);
      this.#codeWord.hidden = true;
      this.frozen = reply.frozen;
      if (action !== "brake.show") this.#setSure(false);
      this.#notice.textContent = action === "brake.freeze" ? `Open requests denied: ${reply.denied}. ${reply.text ?? ""}`.trim() : "";
    } catch (failure) {
      this.#notice.textContent = failure?.text ?? failure?.message ?? "";
      this.#codeWord.hidden = !failure?.details?.code_word;
      this.#setSure(false);
    } finally {
      this.#busy = false;
    }
  }
}

customElements.define("nod-freeze", Freeze);

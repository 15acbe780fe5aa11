// The brake: what is frozen, and a button that freezes or thaws everything.

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
  #button = el("button", "brake");
  #said = el("span", "said");

  connectedCallback() {
    if (this.firstChild) return;
    this.#button.type = "button";
    this.#words.setAttribute("role", "status");
    this.#button.addEventListener("click", () => this.#click());
    this.#button.addEventListener("blur", () => this.#step(false));
    this.replaceChildren(this.#words, this.#said, this.#button);
    this.#show();
  }

  /** load asks nod what is frozen. */
  load() {
    this.#do("brake.show");
  }

  /** frozen are the freezes, in words. */
  set frozen(lines) {
    const before = this.#frozen.length > 0;
    this.#frozen = lines ?? [];
    if (before !== this.#frozen.length > 0) this.#step(false);
    this.#show();
  }

  #step(sure) {
    this.#sure = sure;
    this.#since = performance.now();
    this.#show();
  }

  #show() {
    const on = this.#frozen.length > 0;
    this.classList.toggle("on", on);
    this.#words.textContent = on ? this.#frozen.join("; ") : "";
    this.#button.textContent = on ? "Thaw" : this.#sure ? "Sure? Deny everything" : "Freeze";
    this.#button.title = on ? "Let agents ask again" : "Deny what is open and whatever agents ask, until a thaw. Commands that run already are not stopped.";
  }

  #click() {
    if (this.#busy || performance.now() - this.#since < settle) return;
    if (this.#frozen.length) this.#do("brake.thaw");
    else if (this.#sure) this.#do("brake.freeze");
    else this.#step(true);
  }

  async #do(action) {
    this.#busy = true;
    try {
      const reply = await this.ask(action, {});
      this.frozen = reply.frozen;
      if (action !== "brake.show") this.#step(false);
      this.#said.textContent = action === "brake.freeze" ? `Open requests denied: ${reply.denied}.` : "";
    } catch (failure) {
      this.#said.textContent = failure?.text ?? failure?.message ?? "";
      this.#step(false);
    } finally {
      this.#busy = false;
    }
  }
}

customElements.define("nod-brake", Brake);

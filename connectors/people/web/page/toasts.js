// Short notices that disappear by themselves.

import { el, outcome } from "./parts.js";

const shownFor = 10_000; // ms

/** <nod-toasts> shows notices at the edge of the page, each for 10 s. */
export class Toasts extends HTMLElement {
  connectedCallback() {
    this.setAttribute("role", "status");
  }

  /** show shows a text, with the time of a decision if there is one. If undo is given, the notice has a button with this label, which
   * calls act once. act resolves with the text that replaces the notice. */
  show(text, decision = null, { undo = "", act = null } = {}) {
    const toast = el("div", "toast", outcome(text, decision));
    if (undo) toast.append(this.#button(toast, undo, act));
    this.replaceChildren(toast); // the newest notice replaces the others
    this.#expire(toast);
  }

  /** press presses the button of the notice, if it has one. */
  press() {
    this.querySelector("button:not(:disabled)")?.click();
  }

  #button(toast, words, act) {
    const button = el("button", "undo", words);
    button.type = "button";
    button.addEventListener("click", async () => {
      button.disabled = true;
      toast.replaceChildren(el("p", "outcome", await act()));
      this.#expire(toast);
    });
    return button;
  }

  #expire(toast) {
    clearTimeout(toast.timer);
    toast.timer = setTimeout(() => toast.remove(), shownFor);
  }
}

customElements.define("nod-toasts", Toasts);

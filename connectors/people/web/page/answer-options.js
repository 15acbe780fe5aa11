// The options of an answer besides allow and deny: an edited input, a lasting rule, the
// code word, and the same answer for identical requests.

import { Edit } from "./edit.js";
import { Lasting } from "./lasting.js";
import { el, keyOf } from "./parts.js";

/** AnswerOptions is the part of an answer panel with these options. It calls changed when
 * the effect of the buttons has changed, and seen when more of the lasting rule has been read.
 * ask sends a request to nod. */
export class AnswerOptions {
  element = el("div", "answer-options");
  #request;
  #others; // the identical requests, by key
  #changed;
  #edit = null;
  #lasting;
  #codeWord = null;
  #alike = null;

  constructor(request, others, { ask, changed, seen }) {
    this.#request = request;
    this.#others = new Map(others.map((o) => [keyOf(o), o]));
    this.#changed = changed;
    if (request.kind === "tool_call") {
      this.#edit = new Edit(request, ask);
      this.#add(this.#edit.details);
    }
    this.#lasting = new Lasting(request, seen);
    if (this.#lasting.details) this.#add(this.#lasting.details);
    if (request.takes.length) this.#addTakes();
    if (others.length) this.#addOthers();
    this.element.append(this.#lasting.line);
    this.element.addEventListener("input", () => this.#update());
    for (const d of this.element.querySelectorAll("details")) d.addEventListener("toggle", () => this.#update());
    this.#update();
  }

  #add(details) {
    details.name = `answer-options-${keyOf(this.#request)}`; // the browser keeps only one details element with this name open
    this.element.append(details);
    return details;
  }

  #addTakes() {
    this.element.append(el("p", "takes", `To allow this takes ${this.#request.takes.join("; ")}.`));
    if (!this.#request.code_word) return;
    this.#codeWord = el("input");
    Object.assign(this.#codeWord, { type: "password", autocomplete: "off", maxLength: 256 });
    this.element.append(el("label", "message", "Code word", this.#codeWord));
  }

  #addOthers() {
    const check = el("input");
    check.type = "checkbox";
    const list = el("ul", "others");
    const words = el("span");
    this.#alike = { check, list, words };
    this.element.append(el("label", "alike", check, words), list);
  }

  get #editing() {
    return Boolean(this.#edit?.changed);
  }

  /** unfold opens "edit" or "lasting" and puts the focus in it. */
  unfold(name) {
    const details = { edit: this.#edit?.details, lasting: this.#lasting.details }[name];
    if (!details) return;
    details.open = true;
    details.querySelector("textarea, input, select").focus();
  }

  /** option is the agent's lasting option that Allow chooses, or null. */
  get option() {
    return this.#lasting.option;
  }

  /** plain is true if Allow covers only this call, with its original input. */
  get plain() {
    return !this.#editing && !this.#lasting.chosen;
  }

  /** fault is the reason why the user cannot allow, or "". */
  get fault() {
    if (this.#editing && this.#edit.fault) return this.#edit.fault;
    if (this.#lasting.skipped) return "Read the part of the lasting rule that you skipped to allow.";
    if (!this.#lasting.read) return "Read the lasting rule to its end to allow.";
    if (this.#codeWord && !this.#codeWord.value) return "To allow, enter the code word.";
    return "";
  }

  /** label is the label of Allow. It is "" if the button keeps the label of its option. */
  get label() {
    if (this.#editing) return "allow as edited";
    if (this.#request.kind === "permission") return "allow";
    if (this.option) return "allow, and the agent remembers it";
    return this.#lasting.chosen ? "allow, and from now on" : "";
  }

  /** others are the identical requests that the answer also covers. */
  get others() {
    return this.#alike?.check.checked && this.plain ? [...this.#others.values()] : [];
  }

  /** withCount appends to a label the number of requests that the button answers. */
  withCount(label) {
    const n = this.others.length;
    return n ? `${label} (all ${n + 1})` : label;
  }

  /** extra contains the fields that these options add to an allowing answer. */
  get extra() {
    const extra = this.#lasting.extra;
    if (this.#editing) extra.updated_input = this.#edit.value;
    if (this.#codeWord) extra.code_word = this.#codeWord.value;
    return extra;
  }

  /** updateWaiters stores a new version of an identical request. For any other request it
   * returns false. */
  updateWaiters(request) {
    const key = keyOf(request);
    if (!this.#others.has(key)) return false;
    this.#others.set(key, request);
    this.#update();
    return true;
  }

  /** close stops observing which parts of the lasting rule are in view. */
  close() {
    this.#lasting.close();
  }

  /** forget removes an identical request. For any other request it returns false. */
  forget(key) {
    if (!this.#others.delete(key)) return false;
    this.#update();
    return true;
  }

  #update() {
    this.#lasting.update();
    if (this.#alike) {
      const { check, list, words } = this.#alike, n = this.#others.size;
      check.disabled = !n || !this.plain;
      words.textContent = n === 1 ? "Answer the other that asks the same as well" : `Answer the ${n} others that ask the same as well`;
      list.replaceChildren(...[...this.#others.values()].map((o) => el("li", "line", `${o.pending_id} in ${o.session_id}${o.times ? ` ${o.times}` : ""}`)));
    }
    this.#changed();
  }
}

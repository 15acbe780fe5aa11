// What a person may want beyond a plain yes or no: an edited input, a rule for
// the time to come, the code word, the same answer to others that ask the same.

import { Lasting } from "./lasting.js";
import { el, keyOf } from "./parts.js";

/** AnswerOptions is the part of an answer that says so. It calls changed whenever the
 * buttons mean something else than before. */
export class AnswerOptions {
  element = el("div", "answer-options");
  #request;
  #others; // by key
  #changed;
  #edit = null; // {details, text, was}
  #last;
  #word = null;
  #alike = null;

  constructor(request, others, changed, seen) {
    this.#request = request;
    this.#others = new Map(others.map((o) => [keyOf(o), o]));
    this.#changed = changed;
    if (request.kind === "tool_call") this.#addEdit();
    this.#last = new Lasting(request, seen);
    if (this.#last.details) this.#add(this.#last.details);
    if (request.takes.length) this.#addTakes();
    if (others.length) this.#addOthers();
    this.element.append(this.#last.line);
    this.element.addEventListener("input", () => this.#update());
    for (const d of this.element.querySelectorAll("details")) d.addEventListener("toggle", () => this.#update());
    this.#update();
  }

  #add(details) {
    details.name = `answer-options-${keyOf(this.#request)}`; // one of them is open
    this.element.append(details);
    return details;
  }

  #addEdit() {
    const text = el("textarea", "edit");
    text.rows = 6;
    text.spellcheck = false;
    text.value = spelled(this.#request.action_details);
    this.#edit = {
      text, was: text.value,
      details: this.#add(el("details", "", el("summary", "", "Edit the input…"), el("label", "", "The agent's tool gets this instead (JSON)", text))),
    };
  }

  #addTakes() {
    this.element.append(el("p", "takes", `To allow this takes ${this.#request.takes.join("; ")}.`));
    if (!this.#request.takes.some((t) => t.includes("code word"))) return;
    this.#word = el("input");
    Object.assign(this.#word, { type: "password", autocomplete: "off", maxLength: 256 });
    this.element.append(el("label", "message", "Code word", this.#word));
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
    return Boolean(this.#edit?.details.open) && this.#edit.text.value !== this.#edit.was;
  }

  /** option is the agent's own that a yes chooses instead of the plain one. */
  get option() {
    return this.#last.option;
  }

  /** plain: a yes means this call alone, as it was asked. */
  get plain() {
    return !this.#editing && !this.#last.chosen;
  }

  /** fault is why nothing can be allowed like this, or "". */
  get fault() {
    if (this.#editing && !object(this.#edit.text.value)) return "The edited input is no JSON object.";
    if (!this.#last.read) return "Read what is to last to its end to allow.";
    if (this.#word && !this.#word.value) return "To allow, say the code word.";
    return "";
  }

  /** label is what Allow does, where that is not what the option says. */
  get label() {
    if (this.#editing) return "allow as edited";
    if (this.#request.kind === "permission") return "allow";
    if (this.option) return "allow, and the agent remembers it";
    return this.#last.chosen ? "allow, and from now on" : "";
  }

  /** others are the requests that get the same answer. */
  get others() {
    return this.#alike?.check.checked && this.plain ? [...this.#others.values()] : [];
  }

  /** count is a label that says how many are answered. */
  count(label) {
    const n = this.others.length;
    return n ? `${label} (all ${n + 1})` : label;
  }

  /** extra is what goes with an option that allows. */
  get extra() {
    const extra = this.#last.extra;
    if (this.#editing) extra.updated_input = object(this.#edit.text.value);
    if (this.#word) extra.code_word = this.#word.value;
    return extra;
  }

  /** counts takes in how many calls one of the others is about now. It returns
   * whether it is one of them. */
  counts(request) {
    const key = keyOf(request);
    if (!this.#others.has(key)) return false;
    this.#others.set(key, request);
    this.#update();
    return true;
  }

  /** close ends what watches the page. */
  close() {
    this.#last.close();
  }

  /** forget drops one of the others; it returns whether that changed anything. */
  forget(key) {
    if (!this.#others.delete(key)) return false;
    this.#update();
    return true;
  }

  #update() {
    this.#last.update();
    if (this.#alike) {
      const { check, list, words } = this.#alike, n = this.#others.size;
      check.disabled = !n || !this.plain;
      words.textContent = n === 1 ? "Answer the other that asks the same as well" : `Answer the ${n} others that ask the same as well`;
      list.replaceChildren(...[...this.#others.values()].map((o) => el("li", "line", `${o.pending_id} in ${o.session_id}${o.times ? ` ${o.times}` : ""}`)));
    }
    this.#changed();
  }
}

// JSON in which no character hides: all but plain ones are spelled out.
function spelled(value) {
  return JSON.stringify(value, null, 2).replace(/[^\n\x20-\x7e\p{L}\p{N}\p{P}\p{S}]|[\u115f\u1160\u3164\uffa0]/gu,
    (s) => [...Array(s.length)].map((_, i) => `\\u${s.charCodeAt(i).toString(16).padStart(4, "0")}`).join(""));
}

function object(text) {
  try {
    const v = JSON.parse(text);
    return v && typeof v === "object" && !Array.isArray(v) ? v : null;
  } catch {
    return null;
  }
}

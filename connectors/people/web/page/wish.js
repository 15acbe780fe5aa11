// What a person may want beyond a plain yes or no: an edited input, a rule for
// the time to come, the code word, the same answer to others that ask the same.

import { el, keyOf } from "./parts.js";

const lengths = [["30 minutes", 1800], ["1 hour", 3600], ["8 hours", 28800], ["until it is revoked", 0]];
const places = [["in this session", "session"], ["in every session of this agent", "agent"]];

/** Wish is the part of an answer that says so. It calls changed whenever the
 * buttons mean something else than before. */
export class Wish {
  element = el("div", "wish");
  #request;
  #others; // by key
  #changed;
  #edit = null; // {details, text, was}
  #last = null; // {details, rules, place, length, rule}
  #word = null;
  #alike = null;

  constructor(request, others, changed) {
    this.#request = request;
    this.#others = new Map(others.map((o) => [keyOf(o), o]));
    this.#changed = changed;
    if (request.kind === "tool_call") this.#addEdit();
    if (request.remember.length) this.#addLast();
    if (request.takes.length) this.#addTakes();
    if (others.length) this.#addOthers();
    this.element.addEventListener("input", () => this.#update());
    for (const d of this.element.querySelectorAll("details")) d.addEventListener("toggle", () => this.#update());
    this.#update();
  }

  #details(title, ...children) {
    const details = el("details", "", el("summary", "", title), ...children);
    details.name = `wish-${keyOf(this.#request)}`; // one of them is open
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
      details: this.#details("Edit the input…", el("label", "", "The agent's tool gets this instead (JSON)", text)),
    };
  }

  #addLast() {
    const name = `rule-${keyOf(this.#request)}`;
    const rules = this.#request.remember.map((rule, i) => {
      const radio = el("input");
      Object.assign(radio, { type: "radio", name, value: i, checked: i === 0 });
      return el("label", "rule", radio, el("span", "line", rule));
    });
    const place = choice(places), length = choice(lengths), rule = el("p", "line reach");
    rule.setAttribute("role", "status");
    const permission = this.#request.kind === "permission";
    if (permission) length.value = 0; // what is asked for is to hold it
    this.#last = {
      rules, place, length, rule,
      details: this.#details(permission ? "Where and for how long…" : "Allow from now on…",
        ...permission ? [] : [el("fieldset", "", el("legend", "", "Besides this call"), ...rules)],
        el("p", "choices", el("label", "", "Where ", place), el("label", "", "How long ", length))),
    };
    this.element.append(rule);
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

  get #lasting() {
    return Boolean(this.#last?.details.open);
  }

  /** plain: a yes means this call alone, as it was asked. */
  get plain() {
    return !this.#editing && !this.#lasting;
  }

  /** fault is why nothing can be allowed like this, or "". */
  get fault() {
    if (this.#editing && !object(this.#edit.text.value)) return "The edited input is no JSON object.";
    if (this.#word && !this.#word.value) return "To allow, say the code word.";
    return "";
  }

  /** label is what Allow does, where that is not what the option says. */
  get label() {
    if (this.#editing) return "allow as edited";
    if (this.#request.kind === "permission") return "allow";
    return this.#lasting ? "allow, and from now on" : "";
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
    const extra = {};
    if (this.#editing) extra.updated_input = object(this.#edit.text.value);
    if (this.#lasting) {
      const reach = this.#last.rules.findIndex((r) => r.querySelector("input").checked);
      Object.assign(extra, { scope: this.#last.place.value, reach: Math.max(0, reach), for_seconds: Number(this.#last.length.value) });
    }
    if (this.#word) extra.code_word = this.#word.value;
    return extra;
  }

  /** forget drops one of the others; it returns whether that changed anything. */
  forget(key) {
    if (!this.#others.delete(key)) return false;
    this.#update();
    return true;
  }

  #update() {
    if (this.#last) this.#last.rule.textContent = this.#reach();
    if (this.#alike) {
      const { check, list, words } = this.#alike, n = this.#others.size;
      check.disabled = !n || !this.plain;
      words.textContent = n === 1 ? "Answer the other that asks the same as well" : `Answer the ${n} others that ask the same as well`;
      list.replaceChildren(...[...this.#others.values()].map((o) => el("li", "line", `${o.pending_id} in ${o.session_id}`)));
    }
    this.#changed();
  }

  // What would hold from now on, whole: nothing lasts that is not shown.
  #reach() {
    const permission = this.#request.kind === "permission";
    if (!permission && !this.#lasting) return "";
    const { place, length } = this.#last, extra = this.extra;
    const rule = this.#request.remember[extra.reach ?? 0];
    const where = this.#lasting ? label(place) : places[0][0];
    const seconds = this.#lasting ? Number(length.value) : 0;
    const long = seconds ? `for ${label(length)}` : "until it is revoked";
    return `${permission ? "To allow this lets the agent hold" : "Besides this call, nod will allow from now on"}: ${rule}, ${where}, ${long}.`;
  }
}

function choice(all) {
  const select = el("select");
  for (const [words, value] of all) select.append(new Option(words, value));
  return select;
}

const label = (select) => select.selectedOptions[0].textContent;

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

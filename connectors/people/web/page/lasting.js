// What an answer leaves behind: a rule of nod's, or one that the agent keeps.

import { el, keyOf } from "./parts.js";

const lengths = [["30 minutes", 1800], ["1 hour", 3600], ["8 hours", 28800], ["until it is revoked", 0]];
const places = [["in this session", "session"], ["in every session of this agent", "agent"]];

/** Lasting is the one place where an answer is made to last: it chooses a rule, where
 * it holds and for how long, and says all of it in a line. Nothing lasts before that
 * line has been in view from its beginning to its end. It calls changed whenever it
 * means something else, and seen when the line has been read. */
export class Lasting {
  line = el("div", "reach"); // stands beside the buttons
  details = null;
  #request;
  #seen;
  #rules = []; // {radio, reach} of nod's, {radio, option} of the agent's
  #ends = el("p", "choices");
  #place = choice(places);
  #length = choice(lengths);
  #text = el("p", "line");
  #unseen = new Set();
  #observer = null;

  constructor(request, seen) {
    this.#request = request;
    this.#seen = seen;
    const own = this.#permission ? [] : request.options.filter((o) => o.remembered && o.kind === "allow_always");
    if (!request.remember.length && !own.length) return;
    if (this.#permission) this.#length.value = 0; // what is asked for is to hold it
    this.#text.setAttribute("role", "status");
    this.#ends.append(el("label", "", "Where ", this.#place), el("label", "", "How long ", this.#length));
    const rules = [
      ...request.remember.map((rule, reach) => this.#rule({ reach }, rule)),
      ...own.map((option) => this.#rule({ option }, `The agent remembers: ${option.called}`)),
    ];
    this.details = el("details", "", el("summary", "", this.#permission ? "Where and for how long…" : "Allow from now on…"),
      ...this.#permission ? [] : [el("fieldset", "", el("legend", "", "Besides this call"), ...rules)], this.#ends);
  }

  #rule(means, words) {
    const radio = el("input");
    Object.assign(radio, { type: "radio", name: `rule-${keyOf(this.#request)}`, checked: !this.#rules.length });
    this.#rules.push({ radio, ...means });
    return el("label", "rule", radio, el("span", "line", words));
  }

  get #permission() {
    return this.#request.kind === "permission";
  }

  get #picked() {
    return this.#rules.find((r) => r.radio.checked) ?? {};
  }

  /** chosen: something is to last. */
  get chosen() {
    return Boolean(this.details?.open);
  }

  /** option is the agent's own that was chosen, if one was. */
  get option() {
    return this.chosen ? this.#picked.option ?? null : null;
  }

  /** read: all that is to last has been in view. */
  get read() {
    return !this.#unseen.size;
  }

  /** extra is what goes with the answer. */
  get extra() {
    if (!this.chosen || this.option) return {};
    return { scope: this.#place.value, reach: this.#picked.reach ?? 0, for_seconds: Number(this.#length.value) };
  }

  /** update says what is to last as it is chosen now. */
  update() {
    if (!this.details) return;
    this.#ends.hidden = Boolean(this.option);
    const text = this.#words();
    if (this.#text.textContent === text) return;
    this.#text.textContent = text;
    this.#observer?.disconnect();
    const start = el("div", "end"), end = el("div", "end");
    this.#unseen = new Set(text ? [start, end] : []);
    this.line.replaceChildren(...text ? [start, this.#text, end] : []);
    this.#observer = new IntersectionObserver((entries) => {
      for (const e of entries) if (e.isIntersecting) this.#unseen.delete(e.target);
      if (!this.#unseen.size) this.#seen();
    });
    for (const e of this.#unseen) this.#observer.observe(e);
  }

  // What would hold from now on, whole: nothing lasts that is not shown.
  #words() {
    if (!this.#permission && !this.chosen) return "";
    if (this.option) {
      return `Besides this call, ${remembers(this.option)}`;
    }
    const rule = this.#request.remember[this.#picked.reach ?? 0];
    const where = this.chosen ? label(this.#place) : places[0][0];
    const seconds = this.chosen ? Number(this.#length.value) : 0;
    const long = seconds ? `for ${label(this.#length)}` : "until it is revoked";
    return `${this.#permission ? "To allow this lets the agent hold" : "Besides this call, nod will allow from now on"}: ${rule}, ${where}, ${long}.`;
  }

  /** close ends the watch. */
  close() {
    this.#observer?.disconnect();
  }
}

/** remembers says what the agent keeps of an option for later calls. */
export function remembers(option) {
  return `the agent remembers: ${option.called}. What the agent remembers is its own: nod cannot say what it covers, nor revoke it.`;
}

function choice(all) {
  const select = el("select");
  for (const [words, value] of all) select.append(new Option(words, value));
  return select;
}

const label = (select) => select.selectedOptions[0].textContent;

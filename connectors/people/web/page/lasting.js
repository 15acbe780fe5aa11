// The lasting effect of an answer: a rule that nod stores, or an option that the agent remembers.

import { el, keyOf } from "./parts.js";
import { Reading } from "./reading.js";

const lengths = [["30 minutes", 1800], ["1 hour", 3600], ["8 hours", 28800], ["until it is revoked", 0]];
const places = [["in this session", "session"], ["in every session of this agent", "agent"]];

/** Lasting is the only control for a lasting answer. The user chooses a rule, its scope and its
 * duration, and one line shows the whole choice. Allow is inactive until every part of that line
 * has been in view. Lasting calls seen if read or skipped has changed. */
export class Lasting {
  line = el("div", "reach"); // the page shows it beside the buttons
  details = null;
  #request;
  #seen;
  #rules = []; // {radio, reach} for a rule of nod, {radio, option} for an option of the agent
  #scope = el("p", "choices");
  #place = selectOf(places);
  #length = selectOf(lengths);
  #text = el("p", "line");
  #reading = null; // which parts of the line have been in view; null without a line

  constructor(request, seen) {
    this.#request = request;
    this.#seen = seen;
    const own = this.#permission ? [] : request.options.filter((o) => o.remembered && o.kind === "allow_always");
    if (!request.remember.length && !own.length) return;
    if (this.#permission) this.#length.value = 0; // by default a permission lasts until a person revokes it
    this.#text.setAttribute("role", "status");
    this.#scope.append(el("label", "", "Where ", this.#place), el("label", "", "How long ", this.#length));
    const rules = [
      ...request.remember.map((rule, reach) => this.#rule({ reach }, this.#brief(reach) ? `${rule} (in this session only)` : rule)),
      ...own.map((option) => this.#rule({ option }, `The agent remembers: ${option.called}`)),
    ];
    this.details = el("details", "", el("summary", "", this.#permission ? "Where and for how long…" : "Allow from now on…"),
      ...this.#permission ? [] : [el("fieldset", "", el("legend", "", "Besides this call"), ...rules)], this.#scope);
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

  // Reports whether nod offers a rule for this session only, and for 8 hours at most.
  #brief(reach) {
    return this.#request.session_only?.includes(reach) ?? false;
  }

  // Leaves only the places and durations that nod offers for the chosen rule.
  #limit() {
    const brief = this.#brief(this.#picked.reach);
    for (const [select, wide, most] of [[this.#place, "agent", "session"], [this.#length, "0", "28800"]]) {
      for (const o of select.options) o.disabled = o.hidden = brief && o.value === wide;
      if (brief && select.value === wide) select.value = most;
    }
  }

  /** chosen is true if the user has opened the choices. Allow then gives the chosen lasting
   * answer. */
  get chosen() {
    return Boolean(this.details?.open);
  }

  /** option is the chosen option of the agent, or null. */
  get option() {
    return this.chosen ? this.#picked.option ?? null : null;
  }

  /** read is true if every part of the line has been in view, or there is no line. */
  get read() {
    return !this.#reading || this.#reading.finished;
  }

  /** skipped is true if the end of the line has been in view, but a part before it has not. */
  get skipped() {
    return Boolean(this.#reading?.skipped);
  }

  /** extra returns the fields that the lasting choice adds to the answer. */
  get extra() {
    if (!this.chosen || this.option) return {};
    return { scope: this.#place.value, reach: this.#picked.reach ?? 0, for_seconds: Number(this.#length.value) };
  }

  /** update puts the current choice into the line. */
  update() {
    if (!this.details) return;
    this.#scope.hidden = Boolean(this.option);
    this.#limit();
    const text = this.#sentence();
    if (this.#text.textContent === text) return;
    this.#text.textContent = text;
    this.close();
    const start = el("div", "end"), end = el("div", "end");
    this.line.replaceChildren(...text ? [start, this.#text, end] : []);
    this.#reading = text ? new Reading(start, end, this.#seen) : null;
  }

  // The text of the line: the full effect of the choice, or "" if the answer would not last.
  #sentence() {
    if (!this.#permission && !this.chosen) return "";
    if (this.option) {
      return `Besides this call, ${remembers(this.option)}`;
    }
    const rule = this.#request.remember[this.#picked.reach ?? 0];
    const where = this.chosen ? label(this.#place) : places[0][0];
    const seconds = this.chosen ? Number(this.#length.value) : 0;
    const long = seconds ? `for ${label(this.#length)}` : "until it is revoked";
    return `${this.#permission ? "To allow this lets the agent hold" : "Besides this call, nod will allow"}: ${rule}, ${where}, ${long}.`;
  }

  /** close stops observing which parts of the line are in view. */
  close() {
    this.#reading?.close();
  }
}

/** remembers returns a warning that the agent will remember an option. */
export function remembers(option) {
  return `the agent remembers: ${option.called}. What the agent remembers is its own: nod cannot say what it covers, nor revoke it.`;
}

function selectOf(all) {
  const select = el("select");
  for (const [words, value] of all) select.append(new Option(words, value));
  return select;
}

const label = (select) => select.selectedOptions[0].textContent;

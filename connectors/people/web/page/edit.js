// The edit of a tool's input: a text box for each field, and the difference to the original.

import { el, quotation } from "./parts.js";

const pause = 200; // ms without a change before the difference is fetched

/** Edit is a fold with the fields of a request's input. A text without invisible characters
 * is edited as it is; any other value is edited as JSON, in which nothing can hide. ask
 * sends a request to nod. */
export class Edit {
  details = el("details", "edits", el("summary", "", "Edit the input…"));
  #request;
  #ask;
  #boxes; // {name, area, was, json}; name is null if one box holds the whole input
  #difference = el("div", "difference");
  #timer = 0;
  #version = 0;

  constructor(request, ask) {
    this.#request = request;
    this.#ask = ask;
    const input = request.action_details;
    const fields = isObject(input) ? Object.entries(input) : [];
    this.#boxes = fields.length ? fields.map(([name, value]) => box(name, value)) : [box(null, input)];
    for (const { label } of this.#boxes) this.details.append(label);
    this.details.append(this.#difference);
    this.details.addEventListener("input", () => this.#schedule());
    this.#difference.setAttribute("role", "status");
  }

  /** changed is true if the fold is open and a field differs from the original. */
  get changed() {
    return this.details.open && this.#boxes.some((b) => b.area.value !== b.was);
  }

  /** fault is the reason why the input cannot be used, or "". */
  get fault() {
    const bad = this.#boxes.find((b) => b.json && parsed(b.area.value) === undefined);
    if (bad) return bad.name === null ? "The edited input is not JSON." : `The field ${bad.name} is not JSON.`;
    return isObject(this.value) ? "" : "The edited input is not a JSON object.";
  }

  /** value is the edited input. */
  get value() {
    const of = (b) => b.json ? parsed(b.area.value) : b.area.value;
    if (this.#boxes[0].name === null) return of(this.#boxes[0]);
    return Object.fromEntries(this.#boxes.map((b) => [b.name, of(b)]));
  }

  #schedule() {
    clearTimeout(this.#timer);
    this.#version++;
    this.#timer = setTimeout(() => this.#compare(this.#version), pause);
  }

  // Shows the difference, as nod computes it. The newest edit wins.
  async #compare(version) {
    if (!this.changed || this.fault) {
      this.#difference.replaceChildren();
      return;
    }
    const { session_id, pending_id } = this.#request;
    let shown;
    try {
      const { parts } = await this.#ask("permission.compare", { session_id, pending_id, updated_input: this.value });
      shown = parts.map(quotation);
    } catch (failure) {
      shown = [el("p", "hint", `The difference is not shown: ${failure?.message ?? "nod cannot be reached"}`)];
    }
    if (version === this.#version) this.#difference.replaceChildren(...shown);
  }
}


function box(name, value) {
  const plain = typeof value === "string" && name !== null && !hides(value);
  const area = el("textarea", "edit");
  area.spellcheck = false;
  area.autocomplete = "off";
  area.value = plain ? value : escapedJSON(value);
  area.rows = Math.min(8, area.value.split("\n").length);
  area.dataset.field = name ?? "";
  const words = name === null ? "The input (JSON)" : plain ? name : `${name} (JSON)`;
  return { name, area, json: !plain, was: area.value, label: el("label", "message", words, area) };
}

const isObject = (v) => Boolean(v) && typeof v === "object" && !Array.isArray(v);

const unusual = /[^\n\x20-\x7e\p{L}\p{N}\p{P}\p{S}]|[\u115f\u1160\u3164\uffa0]/gu;

// hides reports whether a text has a character, other than a tab or a line break, that a box
// would not show.
const hides = (text) => text.replaceAll("\t", "").search(unusual) >= 0;

// escapedJSON returns JSON with every invisible or unusual character escaped.
function escapedJSON(value) {
  return JSON.stringify(value, null, 2).replace(unusual,
    (s) => [...Array(s.length)].map((_, i) => `\\u${s.charCodeAt(i).toString(16).padStart(4, "0")}`).join(""));
}

// parsed returns a JSON text's value, or undefined if the text is not JSON.
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

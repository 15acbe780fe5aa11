// The keyboard shortcuts.

import { el } from "./parts.js";

const shortcuts = [
  ["j", "↓", "the next request"],
  ["k", "↑", "the request before"],
  ["a", "", "allow once, as soon as the request was in view to its end"],
  ["d", "", "deny"],
  ["1 … 9", "", "choose an answer of a question"],
  ["m", "", "write a message to the agent"],
  ["e", "", "edit the input"],
  ["f", "", "allow from now on: choose the rule"],
  ["u", "", "take back the denial that was just given"],
  ["/", "", "search"],
  ["Esc", "", "close the request; it stays undecided"],
  ["?", "", "this list"],
];

/** Keys calls actions[key] for a key that is pressed outside text fields, without Ctrl, Alt
 * or Meta. Escape in a text field leaves the field. */
export class Keys {
  #help = el("div", "help", el("h2", "", "Keys"), list());

  constructor(actions) {
    this.#help.popover = "auto";
    this.#help.tabIndex = -1;
    document.body.append(this.#help);
    document.addEventListener("keydown", (e) => {
      if (e.defaultPrevented || e.ctrlKey || e.altKey || e.metaKey || e.isComposing) return;
      if (e.target.closest?.("textarea, input:not([type=checkbox], [type=radio]), select")) {
        if (e.key === "Escape") e.target.blur();
        return;
      }
      if (e.key === "?") this.toggle();
      else if (this.#help.matches(":popover-open") || !actions[e.key]) return;
      else actions[e.key](e);
      e.preventDefault();
    });
  }

  /** toggle shows or hides the list of shortcuts. */
  toggle() {
    this.#help.togglePopover();
    if (this.#help.matches(":popover-open")) this.#help.focus();
  }
}

function list() {
  const all = el("dl", "keys");
  for (const [key, also, words] of shortcuts) {
    const dt = el("dt", "", el("kbd", "", key));
    if (also) dt.append(" ", el("kbd", "", also));
    all.append(dt, el("dd", "", words));
  }
  return all;
}

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

const moves = new Set(["j", "k", "ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "PageDown", "PageUp", "Home", "End", " "]);
const inText = (e) => Boolean(e.target.closest?.("textarea, input:not([type=checkbox], [type=radio]), select"));

/** Keys calls actions[key] for a key that is pressed outside text fields, without Ctrl, Alt
 * or Meta. Escape in a text field leaves the field. A key that is held down counts once, except
 * for moves, because a second press would answer the next request. If a text field ends or
 * loses the focus while the user types, the keys that follow have no effect until the user
 * leaves the text by Escape, Tab or a click. */
export class Keys {
  #help = el("div", "help", el("h2", "", "Keys"), list());
  #typing = false;

  constructor(actions) {
    this.#help.popover = "auto";
    this.#help.tabIndex = -1;
    document.body.append(this.#help);
    document.addEventListener("pointerdown", () => { this.#typing = false; }, true);
    document.addEventListener("keydown", (e) => {
      if (this.#lost(e)) {
        e.preventDefault();
        return;
      }
      if (e.defaultPrevented || e.ctrlKey || e.altKey || e.metaKey || e.isComposing) return;
      if (inText(e)) {
        if (e.key === "Escape") e.target.blur();
        return;
      }
      if (e.key === "?") this.toggle();
      else if (this.#help.matches(":popover-open") || !actions[e.key]) return;
      else actions[e.key](e);
      e.preventDefault();
    });
  }

  // Reports whether a key must have no effect: it repeats by itself, or it belongs to a text
  // whose field is gone.
  #lost(e) {
    if (["Escape", "Tab"].includes(e.key)) this.#typing = false;
    else if (inText(e)) this.#typing = true;
    else return this.#typing && !e.ctrlKey && !e.altKey && !e.metaKey || e.repeat && !moves.has(e.key);
    return false;
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

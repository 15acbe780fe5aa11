// How much of a text the user has had in view.

const moment = 100; // ms for which a part of the text must stay in view

/** Reading tells when every part of a text has been in view for a moment. A jump over a part, as by
 * the key End, leaves that part unread. */
export class Reading {
  #first;
  #last;
  #changed;
  #timer = 0;
  #height = 0; // of the text, in pixels
  #view = [0, 0]; // the part that was in view at the last look, in pixels from the start
  #parts = []; // the parts that have stayed in view, in order and disjoint

  /** The text lies between the elements first and last, which have the same parent or the same
   * scrolling ancestors. changed is called if finished or skipped has changed. */
  constructor(first, last, changed) {
    [this.#first, this.#last, this.#changed] = [first, last, changed];
    this.#timer = setInterval(() => this.#look(), moment);
  }

  /** finished is true if everything has been in view. */
  finished = false;

  /** skipped is true if the end has been in view, but a part before it has not. */
  get skipped() {
    return !this.finished && this.#parts.length > 0 && this.#parts.at(-1)[1] >= this.#height - 1;
  }

  /** close stops looking. */
  close() {
    clearInterval(this.#timer);
  }

  #look() {
    if (document.hidden || !this.#first.checkVisibility() || !this.#last.checkVisibility()) return;
    const start = this.#first.getBoundingClientRect().top;
    const height = Math.max(this.#last.getBoundingClientRect().top - start, 1);
    const frame = frameOf(this.#first), top = frame.top - start, bottom = frame.bottom - start;
    if (Math.abs(height - this.#height) >= 1) { // another layout: only the parts above the view have kept their places
      this.#parts = this.#parts.filter((p) => p[0] < top).map((p) => [p[0], Math.min(p[1], top)]);
      this.#height = height;
      this.#view = [0, 0];
    }
    const skipped = this.skipped, view = [Math.max(top, 0), Math.min(bottom, height)];
    this.#add(Math.max(view[0], this.#view[0]), Math.min(view[1], this.#view[1]));
    this.#view = view;
    this.finished = this.#parts.length === 1 && this.#parts[0][0] <= 1 && this.skipped;
    if (this.finished) this.close();
    if (this.finished || skipped !== this.skipped) this.#changed();
  }

  // Adds a part that has stayed in view, and joins it with the parts that it touches.
  #add(from, to) {
    if (from >= to) return;
    const apart = this.#parts.filter((p) => p[1] < from - 1 || p[0] > to + 1);
    const joined = this.#parts.filter((p) => !apart.includes(p));
    apart.push([Math.min(from, ...joined.map((p) => p[0])), Math.max(to, ...joined.map((p) => p[1]))]);
    this.#parts = apart.sort((a, b) => a[0] - b[0]);
  }
}

// The part of the window, from top to bottom in pixels, in which an element can be in view: no
// ancestor that scrolls hides it there.
function frameOf(element) {
  let top = 0, bottom = innerHeight;
  for (let e = element.parentElement; e; e = e.parentElement) {
    const { overflowY, position } = getComputedStyle(e), box = e.getBoundingClientRect();
    if (overflowY !== "visible" && e !== document.body && e !== document.documentElement) {
      [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
    }
    if (position === "fixed") break; // the ancestors of a fixed element hide no part of it
  }
  return { top, bottom };
}

// The time on nod's clock, in which deadlines are given.

let ahead = 0; // nod's clock minus this browser's clock, in ms

/** sync sets nod's clock from a time that nod has just sent. */
export function sync(serverTime) {
  if (serverTime) ahead = Date.parse(serverTime) - Date.now();
}

/** now returns the time on nod's clock, in ms since 1970. */
export const now = () => Date.now() + ahead;

const units = [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1000]];

/** roughly formats a duration in ms in the largest unit of which there are at least two, such as
 * "6 d" or "90 s". It rounds up only if less than a 24th of a unit is missing. */
export function roughly(ms) {
  for (const [name, size] of units) {
    const whole = ms + size / 24;
    if (whole >= 2 * size || name === "s") return `${Math.max(0, Math.floor(whole / size))} ${name}`;
  }
}

const shown = new Set(); // the clocks on the page
setInterval(() => { for (const c of shown) c.show(); }, 1000);

/** <nod-clock> shows how much time is left until the time in its attribute "until", or how
 * long ago the time in its attribute "since" was. */
export class Clock extends HTMLElement {
  static observedAttributes = ["until", "since"];

  connectedCallback() {
    shown.add(this);
    this.show();
  }

  disconnectedCallback() {
    shown.delete(this);
  }

  attributeChangedCallback() {
    this.show();
  }

  /** show brings the text up to date. */
  show() {
    const until = this.getAttribute("until"), since = this.getAttribute("since");
    let text = "";
    if (since) text = `${roughly(now() - Date.parse(since))} ago`;
    else if (until) {
      const left = Date.parse(until) - now();
      text = left > 0 ? `${roughly(left)} left` : "expired";
      this.classList.toggle("soon", left < 30_000);
    }
    if (this.textContent !== text) this.textContent = text;
  }
}

customElements.define("nod-clock", Clock);

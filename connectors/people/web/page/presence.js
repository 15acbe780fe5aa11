// Being there: a session's input lock is held while somebody really acts on its
// page, and by nothing else.

const acting = 60_000; // ms for which an input counts
const every = 10_000; // ms; the lock's lease is 30 s

/** Presence holds the lock of the session that is looked at. ask asks nod; told
 * is told who holds it: {granted, holder}, or null for not known. */
export class Presence {
  #ask;
  #told;
  #session = "";
  #held = "";
  #last = -Infinity;
  #tried = -Infinity;
  #busy = false;

  constructor(ask, told) {
    this.#ask = ask;
    this.#told = told;
    for (const kind of ["keydown", "pointerdown", "wheel", "touchmove", "input"]) {
      document.addEventListener(kind, (e) => this.#acted(e), { capture: true, passive: true });
    }
    for (const kind of ["visibilitychange", "blur", "pagehide"]) addEventListener(kind, () => this.#check());
    setInterval(() => this.#check(), every);
  }

  /** at names the session whose page is open, or none. */
  at(session) {
    if (session === this.#session) return;
    this.#session = session;
    this.#last = this.#tried = -Infinity; // what was done elsewhere is no input here
    this.#told(null);
    this.#check();
  }

  /** lost says that the connection ended, and what it held with it. */
  lost() {
    this.#held = "";
    this.#told(null);
  }

  #acted(e) {
    if (!e.isTrusted || !this.#session) return;
    this.#last = Date.now();
    if (this.#held !== this.#session && Date.now() - this.#tried > every / 2) this.#check();
  }

  get #here() {
    return this.#session && Date.now() - this.#last < acting && document.visibilityState === "visible" && document.hasFocus();
  }

  // One thing at a time, and the newest wish last.
  async #check() {
    if (this.#busy) return;
    this.#busy = true;
    const here = this.#here, session = this.#session;
    try {
      if (this.#held && (!here || this.#held !== session)) {
        const left = this.#held;
        this.#held = "";
        await this.#ask("session.lock.release", { session_id: left });
        if (left === session) this.#told({ granted: false, holder: "" });
      }
      if (here) {
        this.#tried = Date.now();
        const lock = await this.#ask("session.lock.acquire", { session_id: session });
        this.#held = lock.granted ? session : "";
        if (session === this.#session) this.#told(lock);
      }
    } catch {
      this.#held = ""; // its lease ends by itself
      this.#told(null);
    }
    this.#busy = false;
    if (session !== this.#session || this.#held && !this.#here) this.#check();
  }
}

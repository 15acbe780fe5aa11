// Presence: a user has the input lock of a session only while using that session's page.

const activeFor = 60_000; // ms after the last input in which the user counts as active
const renewEvery = 10_000; // ms; the lock's lease is 30 s

/** Presence takes, renews and releases the input lock of the open session. The function ask sends
 * a request to nod. Presence calls onLock with the state of the lock, {granted, holder}, or with
 * null if the state is unknown. */
export class Presence {
  #ask;
  #onLock;
  #session = "";
  #held = "";
  #lastInput = -Infinity;
  #lastTry = -Infinity;
  #busy = false;

  constructor(ask, onLock) {
    this.#ask = ask;
    this.#onLock = onLock;
    for (const kind of ["keydown", "pointerdown", "wheel", "touchmove", "input"]) {
      document.addEventListener(kind, (e) => this.#onInput(e), { capture: true, passive: true });
    }
    for (const kind of ["visibilitychange", "blur", "pagehide"]) addEventListener(kind, () => this.#check());
    setInterval(() => this.#check(), renewEvery);
  }

  /** setSession sets the session whose page is open. "" means that no session's page is open. */
  setSession(session) {
    if (session === this.#session) return;
    this.#session = session;
    this.#lastInput = this.#lastTry = -Infinity; // ignore input on other pages
    this.#onLock(null);
    this.#check();
  }

  /** disconnected clears the state of the lock after the connection has ended. */
  disconnected() {
    this.#held = "";
    this.#onLock(null);
  }

  #onInput(e) {
    if (!e.isTrusted || !this.#session) return;
    this.#lastInput = Date.now();
    if (this.#held !== this.#session && Date.now() - this.#lastTry > renewEvery / 2) this.#check();
  }

  get #active() {
    return this.#session && Date.now() - this.#lastInput < activeFor && document.visibilityState === "visible" && document.hasFocus();
  }

  // Takes, renews or releases the lock, with one call at a time. If the open session or the
  // user's activity has changed during the call, it checks again.
  async #check() {
    if (this.#busy) return;
    this.#busy = true;
    const active = this.#active, session = this.#session;
    try {
      if (this.#held && (!active || this.#held !== session)) {
        const released = this.#held;
        this.#held = "";
        await this.#ask("session.lock.release", { session_id: released });
        if (released === session) this.#onLock({ granted: false, holder: "" });
      }
      if (active) {
        this.#lastTry = Date.now();
        const lock = await this.#ask("session.lock.acquire", { session_id: session });
        this.#held = lock.granted ? session : "";
        if (session === this.#session) this.#onLock(lock);
      }
    } catch {
      this.#held = ""; // the lock's lease ends by itself
      this.#onLock(null);
    }
    this.#busy = false;
    if (session !== this.#session || this.#held && !this.#active) this.#check();
  }
}

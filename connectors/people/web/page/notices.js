// Notices of new requests in an open tab: a notification of the browser and a sound. Both
// are off until the user turns them on, and stay on in this browser.

import { el } from "./parts.js";

/** Notices tells of a new request while the page is hidden or has no focus. */
export class Notices {
  #notify = toggle("notify", "Notify in this browser");
  #sound = toggle("sound", "Sound");
  #audio = null;

  constructor() {
    this.#notify.check.disabled = !("Notification" in globalThis);
    this.#notify.check.addEventListener("change", () => this.#permit());
    this.#sound.check.addEventListener("change", () => this.#beep());
  }

  /** controls are the elements with which the user turns notices on and off. */
  get controls() {
    return [this.#notify.label, this.#sound.label];
  }

  /** tell tells of a request. The notification says nothing of the call but its risk, because
   * others may see the screen. */
  tell(request) {
    if (document.visibilityState === "visible" && document.hasFocus()) return;
    if (this.#sound.check.checked) this.#beep();
    if (!this.#notify.check.checked || globalThis.Notification?.permission !== "granted") return;
    const notice = new Notification("nod", { body: `A request waits for your answer (${request.risk} risk).`, tag: "nod", icon: "icon-192.png" });
    notice.onclick = () => {
      focus();
      notice.close();
    };
  }

  async #permit() {
    const { check } = this.#notify;
    if (check.checked && await Notification.requestPermission() !== "granted") {
      check.checked = false;
      check.dispatchEvent(new Event("change"));
    }
  }

  #beep() {
    if (!this.#sound.check.checked) return;
    this.#audio ??= new AudioContext();
    const tone = this.#audio.createOscillator(), volume = this.#audio.createGain(), now = this.#audio.currentTime;
    tone.frequency.value = 660;
    volume.gain.setValueAtTime(0.15, now);
    volume.gain.exponentialRampToValueAtTime(0.001, now + 0.4);
    tone.connect(volume).connect(this.#audio.destination);
    tone.start(now);
    tone.stop(now + 0.4);
  }
}

// toggle returns a check box whose state is kept in this browser.
function toggle(name, words) {
  const check = el("input");
  Object.assign(check, { type: "checkbox", checked: localStorage.getItem(name) === "on" });
  check.addEventListener("change", () => localStorage.setItem(name, check.checked ? "on" : "off"));
  return { check, label: el("label", "toggle", check, words) };
}

// Being told that something waits, on a device where the page is installed.

import { el } from "./parts.js";

// The one script that may be loaded beside the page's own is its worker.
const worker = globalThis.trustedTypes?.createPolicy("nod-worker", { createScriptURL: () => "sw.js" });

const installed = () => matchMedia("(display-mode: standalone)").matches || navigator.standalone === true;

/** <nod-push> is a button that starts and stops it. It is there where the page is
 * installed and the browser can. It is given `ask`, as the other views are. */
export class Push extends HTMLElement {
  #button = el("button", "notify");
  #said = el("span", "said");
  #key = "";
  #manager = null;
  #subscription = null;
  ask = null;

  connectedCallback() {
    if (this.firstChild) return;
    this.hidden = true;
    this.#button.type = "button";
    this.#said.setAttribute("role", "status");
    this.#button.addEventListener("click", () => this.#turn());
    this.replaceChildren(this.#said, this.#button);
  }

  /** load looks how it stands, and tells nod of this device anew: the gateway
   * may be another, and the session. */
  async load() {
    if (!installed() || !("serviceWorker" in navigator) || !("PushManager" in globalThis)) return;
    try {
      this.#key = (await this.ask("push.show", {})).public_key;
      await navigator.serviceWorker.register(worker?.createScriptURL("") ?? "sw.js");
      this.#manager = (await navigator.serviceWorker.ready).pushManager;
      this.#subscription = await this.#manager.getSubscription();
      if (this.#subscription && encoded(this.#subscription.options.applicationServerKey) !== this.#key) await this.#drop();
      if (this.#subscription) await this.#tell("push.subscribe");
      this.#show("");
    } catch (failure) {
      this.#show(words(failure));
    }
  }

  /** leave forgets this device before its user logs out. */
  async leave() {
    if (this.#subscription) await this.#drop().catch(() => null);
  }

  #show(said) {
    this.hidden = false;
    this.#said.textContent = said;
    this.#button.textContent = this.#subscription ? "Stop notifications" : "Notify me";
    this.#button.disabled = !this.#manager;
  }

  async #turn() {
    this.#button.disabled = true;
    try {
      if (this.#subscription) {
        await this.#tell("push.unsubscribe");
        await this.#drop();
      } else {
        this.#subscription = await this.#manager.subscribe({ userVisibleOnly: true, applicationServerKey: this.#key });
        await this.#tell("push.subscribe");
      }
      this.#show("");
    } catch (failure) {
      this.#show(words(failure));
    }
  }

  async #drop() {
    await this.#subscription.unsubscribe();
    this.#subscription = null;
  }

  #tell(action) {
    return this.ask(action, { subscription: this.#subscription.toJSON() });
  }
}

const words = (failure) => `No notifications: ${failure?.message ?? "nod cannot be reached"}`;

const encoded = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer ?? [])))
  .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

customElements.define("nod-push", Push);

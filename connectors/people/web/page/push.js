// Push notifications, on a device that has installed the page.

import { el } from "./parts.js";

// The content security policy in handler.go permits no other script URL than this worker.
const worker = globalThis.trustedTypes?.createPolicy("nod-worker", { createScriptURL: () => "sw.js" });

const installed = () => matchMedia("(display-mode: standalone)").matches || navigator.standalone === true;

/** <nod-push> is a button that turns notifications on and off. It is visible if the page is
 * installed and the browser supports pushes. The app sets the property ask to a function that
 * sends a request to nod. */
export class Push extends HTMLElement {
  #button = el("button", "notify");
  #notice = el("span", "notice");
  #key = "";
  #manager = null;
  #subscription = null;
  ask = null;

  connectedCallback() {
    if (this.firstChild) return;
    this.hidden = true;
    this.#button.type = "button";
    this.#notice.setAttribute("role", "status");
    this.#button.addEventListener("click", () => this.#toggle());
    this.replaceChildren(this.#notice, this.#button);
  }

  /** load sends the browser's subscription to nod again, because the gateway or the login
   * session may be new. If that fails, it shows the error beside the button. */
  async load() {
    if (!installed() || !("serviceWorker" in navigator) || !("PushManager" in globalThis)) return;
    try {
      this.#key = (await this.ask("push.show", {})).public_key;
      await navigator.serviceWorker.register(worker?.createScriptURL("") ?? "sw.js");
      this.#manager = (await navigator.serviceWorker.ready).pushManager;
      this.#subscription = await this.#manager.getSubscription();
      if (this.#subscription && encoded(this.#subscription.options.applicationServerKey) !== this.#key) await this.#unsubscribe();
      if (this.#subscription) await this.#send("push.subscribe");
      this.#show("");
    } catch (failure) {
      this.#show(messageOf(failure));
    }
  }

  /** leave ends the browser's subscription. The app calls leave after a logout. */
  async leave() {
    if (this.#subscription) await this.#unsubscribe().catch(() => null);
  }

  #show(notice) {
    this.hidden = false;
    this.#notice.textContent = notice;
    this.#button.textContent = this.#subscription ? "Stop notifications" : "Notify me";
    this.#button.disabled = !this.#manager;
  }

  async #toggle() {
    this.#button.disabled = true;
    try {
      if (this.#subscription) {
        await this.#send("push.unsubscribe");
        await this.#unsubscribe();
      } else {
        this.#subscription = await this.#manager.subscribe({ userVisibleOnly: true, applicationServerKey: this.#key });
        await this.#send("push.subscribe");
      }
      this.#show("");
    } catch (failure) {
      this.#show(messageOf(failure));
    }
  }

  async #unsubscribe() {
    await this.#subscription.unsubscribe();
    this.#subscription = null;
  }

  #send(action) {
    return this.ask(action, { subscription: this.#subscription.toJSON() });
  }
}

const messageOf = (failure) => `No notifications: ${failure?.message ?? "nod cannot be reached"}`;

const encoded = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer ?? [])))
  .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

customElements.define("nod-push", Push);

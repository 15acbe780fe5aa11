// The connection to nod. It reconnects by itself.

const firstPause = 500, longestPause = 10_000; // ms
const silence = 40_000; // ms without a message; the server sends the time every 15 s

/** Link sends requests and receives messages. It fires the event "notification" for each
 * notification, "up" when it has connected, "down" with the reason when the connection has
 * ended, "user" with the user's name before it reconnects, and "loggedout" when the session is no longer valid. */
export class Link extends EventTarget {
  #socket = null;
  #waiting = new Map(); // the requests without a reply, by id: {resolve, reject}
  #pause = firstPause;
  #last = 0;
  #watchdog = 0;
  #ids = 0;

  open() {
    const url = new URL("ws", location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    url.hash = "";
    const socket = new WebSocket(url);
    this.#socket = socket;
    socket.onopen = () => {
      this.#pause = firstPause;
      this.#resetWatchdog();
      this.dispatchEvent(new Event("up"));
    };
    socket.onmessage = (e) => {
      this.#resetWatchdog();
      this.#handle(JSON.parse(e.data));
    };
    socket.onclose = (e) => this.#closed(socket, e.reason);
  }

  /** retry connects once the session can be used again. why is the reason why it cannot be used now. */
  retry(why) {
    this.dispatchEvent(new CustomEvent("down", { detail: why }));
    this.#reconnect();
  }

  /** up is true while the page is connected. */
  get up() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** ask resolves with the payload of the reply. It rejects with the payload of an error. If
   * the connection ends first, it rejects with null. */
  ask(action, payload) {
    return new Promise((resolve, reject) => {
      if (this.#socket?.readyState !== WebSocket.OPEN) {
        reject(null);
        return;
      }
      const id = `${++this.#ids}`;
      this.#waiting.set(id, { resolve, reject });
      this.#socket.send(JSON.stringify({ id, type: "request", action, payload }));
    });
  }

  #handle(message) {
    if (message.type === "notification") {
      this.dispatchEvent(new CustomEvent("notification", { detail: message }));
      return;
    }
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.type === "error") waiting?.reject(message.payload);
    else waiting?.resolve(message.payload);
  }

  #resetWatchdog() {
    this.#last = Date.now();
    clearInterval(this.#watchdog);
    this.#watchdog = setInterval(() => {
      if (Date.now() - this.#last > silence) this.#closed(this.#socket, "nod has gone silent");
    }, silence / 4);
  }

  #closed(socket, reason) {
    if (socket !== this.#socket) return; // another socket has replaced this one
    this.#socket = null;
    clearInterval(this.#watchdog);
    socket.onclose = null;
    socket.close();
    for (const waiting of this.#waiting.values()) waiting.reject(null);
    this.#waiting.clear();
    this.dispatchEvent(new CustomEvent("down", { detail: reason }));
    setTimeout(() => this.#reconnect(), this.#pause * (0.5 + Math.random() / 2));
    this.#pause = Math.min(2 * this.#pause, longestPause);
  }

  // A browser does not tell a page why a WebSocket was refused. Each attempt therefore first
  // calls whoami, which notices that the login is no longer valid.
  async #reconnect() {
    const who = await whoami();
    if (who.status === 401 || who.status === 403) this.dispatchEvent(new CustomEvent("loggedout", { detail: who.message }));
    else if (who.status === 200) {
      this.dispatchEvent(new CustomEvent("user", { detail: who.name }));
      this.open();
    } else {
      if (who.status !== 0) this.dispatchEvent(new CustomEvent("down", { detail: who.message }));
      setTimeout(() => this.#reconnect(), this.#pause);
      this.#pause = Math.min(2 * this.#pause, longestPause);
    }
  }
}

/** whoami returns the logged-in user or an error message. Status 0 means that there is no
 * connection. */
export async function whoami() {
  try {
    const reply = await fetch("whoami", { cache: "no-store" });
    return { status: reply.status, ...(await reply.json()) };
  } catch {
    return { status: 0, message: "nod cannot be reached" };
  }
}

/** login exchanges the token in the page's address for a session, and removes the token from the
 * address. Without a token it does nothing. It returns an error message, or "". */
export async function login() {
  const token = new URLSearchParams(location.hash.slice(1)).get("login");
  if (!token) return "";
  history.replaceState(null, "", location.pathname);
  try {
    const reply = await fetch("login", { method: "POST", body: JSON.stringify({ token }) });
    return reply.ok ? "" : (await reply.json()).message;
  } catch {
    return "nod cannot be reached";
  }
}

/** issuer returns the name of the issuer at which people can log in, or "". */
export async function issuer() {
  try {
    const reply = await fetch("login/oidc", { cache: "no-store" });
    return reply.ok ? (await reply.json()).label : "";
  } catch {
    return "";
  }
}

/** loginAtIssuer sends the browser to the issuer, which sends it back to this view of the page. It
 * returns an error message, or "". */
export async function loginAtIssuer() {
  try {
    const reply = await fetch("login/oidc", { method: "POST", body: JSON.stringify({ page: location.hash }) });
    const { url, message } = await reply.json();
    if (!reply.ok) return message;
    location.assign(url);
    return "";
  } catch {
    return "nod cannot be reached";
  }
}

/** logout ends this session in every window. why is an error message, or "". url is the address at
 * which the issuer of the login logs the user out too, if there is one. */
export async function logout() {
  try {
    const reply = await fetch("logout", { method: "POST" });
    const { url = "", message = "" } = reply.status === 204 ? {} : await reply.json();
    return { why: reply.ok ? "" : message, url };
  } catch {
    return { why: "You are still logged in: nod cannot be reached. Try again.", url: "" };
  }
}

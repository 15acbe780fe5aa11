// The connection to nod: it comes back by itself, and says how it is.

const firstPause = 500, longestPause = 10_000; // ms
const silence = 40_000; // ms without a word: the server says the time every 15 s

/** Link sends requests and hands on what nod says. It fires "note" with each
 * notification, "up" when it is connected and "down" with why it is not. */
export class Link extends EventTarget {
  #socket = null;
  #waiting = new Map(); // replies by id
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
      this.#heard();
      this.dispatchEvent(new Event("up"));
    };
    socket.onmessage = (e) => {
      this.#heard();
      this.#take(JSON.parse(e.data));
    };
    socket.onclose = (e) => this.#closed(socket, e.reason);
  }

  /** up says whether there is a connection. */
  get up() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** ask resolves with the payload of the reply, and rejects with that of an
   * error, or with null where the connection ended first. */
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

  #take(message) {
    if (message.type === "notification") {
      this.dispatchEvent(new CustomEvent("note", { detail: message }));
      return;
    }
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.type === "error") waiting?.reject(message.payload);
    else waiting?.resolve(message.payload);
  }

  #heard() {
    this.#last = Date.now();
    clearInterval(this.#watchdog);
    this.#watchdog = setInterval(() => {
      if (Date.now() - this.#last > silence) this.#closed(this.#socket, "nod has gone silent");
    }, silence / 4);
  }

  #closed(socket, reason) {
    if (socket !== this.#socket) return; // an old one
    this.#socket = null;
    clearInterval(this.#watchdog);
    socket.onclose = null;
    socket.close();
    for (const waiting of this.#waiting.values()) waiting.reject(null);
    this.#waiting.clear();
    this.dispatchEvent(new CustomEvent("down", { detail: reason }));
    setTimeout(() => this.#again(), this.#pause * (0.5 + Math.random() / 2));
    this.#pause = Math.min(2 * this.#pause, longestPause);
  }

  // A refused connection does not say why, so ask who we are first.
  async #again() {
    const who = await whoami();
    if (who.status === 401 || who.status === 403) this.dispatchEvent(new CustomEvent("out", { detail: who.message }));
    else if (who.status === 200) this.open();
    else {
      setTimeout(() => this.#again(), this.#pause);
      this.#pause = Math.min(2 * this.#pause, longestPause);
    }
  }
}

/** whoami is who is logged in, or why nobody is; status 0 is no connection. */
export async function whoami() {
  try {
    const reply = await fetch("whoami", { cache: "no-store" });
    return { status: reply.status, ...(await reply.json()) };
  } catch {
    return { status: 0, message: "nod cannot be reached" };
  }
}

/** login spends the pass in the page's address, if there is one, and takes it
 * out of there. It returns why that did not work, or "". */
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

/** logout ends this session, in every window. It returns why that did not work,
 * or "". */
export async function logout() {
  try {
    const reply = await fetch("logout", { method: "POST" });
    return reply.ok ? "" : (await reply.json()).message;
  } catch {
    return "You are logged in still: nod cannot be reached. Try again.";
  }
}

// The page: login, connection, pending requests, and the open view.

import "./freeze.js";
import { sync } from "./clock.js";
import "./dialog.js";
import "./grants.js";
import "./history.js";
import "./inbox.js";
import { Keys } from "./keys.js";
import { Link, issuer, login, loginAtIssuer, logout, whoami } from "./link.js";
import { Notices } from "./notices.js";
import { el, keyOf } from "./parts.js";
import { Presence } from "./presence.js";
import "./push.js";
import "./session.js";
import "./sessions.js";
import "./toasts.js";

const wide = matchMedia("(min-width: 900px)"); // the list and the request are side by side; see style.css
const windowSize = 1000; // the largest number of requests that the list gets at a time
const undoText = "Taken back: if the agent asks again, you are asked again.";
const notConfirmed = "Not confirmed: nod could not be reached. Look at the request again before you answer anew.";

/** <nod-app> is the whole page. */
class App extends HTMLElement {
  #link = new Link();
  #views = {};
  #view = null;
  #nav = el("nav");
  #main = el("main");
  #dialog = document.createElement("nod-dialog");
  #toasts = document.createElement("nod-toasts");
  #state = el("p", "state");
  #login = el("button", "login");
  #user = el("summary", "user");
  #logout = el("button", "logout", "Log out");
  #notices = new Notices();
  #push = document.createElement("nod-push");
  #freeze = document.createElement("nod-freeze");
  #connected = false;
  #awaited = 0; // number of pending requests that nod has announced and that have not arrived yet
  #window = windowSize; // number of pending requests that the list has at most
  #unlisted = 0; // number of further pending requests
  #pending = new Map(); // requests by key
  #presence = null;
  #subscribed = ""; // the subscribed session
  #icon = document.querySelector("link[rel=icon]");

  async connectedCallback() {
    this.#state.setAttribute("role", "status");
    this.#nav.setAttribute("aria-label", "Pages");
    const ask = (action, payload) => this.#link.ask(action, payload);
    for (const name of ["inbox", "sessions", "session", "history", "grants"]) {
      this.#views[name] = document.createElement(`nod-${name}`);
      this.#views[name].ask = ask;
    }
    for (const [hash, words] of [["#/", "Inbox"], ["#/sessions", "Sessions"], ["#/history", "History"], ["#/grants", "Standing"]]) {
      const a = el("a", "", words);
      a.href = hash;
      this.#nav.append(a);
    }
    this.#freeze.ask = this.#push.ask = this.#dialog.panel.ask = ask;
    this.#freeze.hidden = true;
    this.#login.type = "button";
    this.#login.hidden = true;
    this.#addHandlers();
    const keys = this.#keys(), shortcuts = el("button", "", "Keys");
    shortcuts.type = "button";
    shortcuts.addEventListener("click", () => keys.toggle());
    this.#logout.type = "button";
    const account = el("details", "account", this.#user, el("div", "menu", this.#push, ...this.#notices.controls, shortcuts, this.#logout));
    account.hidden = true;
    this.replaceChildren(el("header", "top", el("h1", "", "nod"), this.#nav, this.#freeze, account),
      this.#state, this.#login, el("div", "panes", this.#main, this.#dialog), this.#toasts);
    this.#presence = new Presence(ask, (lock) => { this.#views.session.lock = lock; });
    this.#showState("Connecting…");
    const why = await login();
    this.#route();
    const who = await whoami();
    if (who.status === 200) {
      this.#setUser(who.name);
      this.#link.open();
    } else if (who.status === 503) this.#link.retry(who.message);
    else this.#loggedOut(why || who.message);
  }

  #setUser(name) {
    this.#user.textContent = name;
    this.#user.closest(".account").hidden = false;
    this.#login.hidden = true;
  }

  // Offers the login at the issuer that the settings name, if there is one.
  async #offerLogin() {
    const name = await issuer();
    this.#login.textContent = `Log in with ${name}`;
    this.#login.hidden = !name;
  }

  async #loginAtIssuer() {
    const why = await loginAtIssuer();
    if (why) this.#showState(why);
  }

  #addHandlers() {
    this.#logout.addEventListener("click", () => this.#leave());
    this.#login.addEventListener("click", () => this.#loginAtIssuer());
    this.#views.inbox.addEventListener("review", (e) => this.#review(e.detail));
    this.#views.inbox.addEventListener("more", () => this.#more());
    this.addEventListener("answer", (e) => this.#answer(e.target, e.detail));
    this.#views.session.addEventListener("agent", (e) => this.#freeze.setContext({ session: location.hash.split("/")[2], agent: e.detail }));
    this.#dialog.addEventListener("closed", (e) => this.#closed(e.detail));
    this.#link.addEventListener("up", () => this.#up());
    this.#link.addEventListener("user", (e) => this.#setUser(e.detail));
    this.#link.addEventListener("down", (e) => this.#down(e.detail));
    this.#link.addEventListener("loggedout", (e) => this.#loggedOut(e.detail));
    this.#link.addEventListener("notification", (e) => this.#notified(e.detail));
    wide.addEventListener("change", () => this.#cover());
    addEventListener("hashchange", () => {
      this.#route();
      const title = this.#view.querySelector("h2");
      title.tabIndex = -1;
      title.focus();
    });
  }

  #keys() {
    const panel = () => this.#dialog.shows ? this.#dialog.panel : null;
    const actions = {
      j: () => this.#step(1), k: () => this.#step(-1),
      a: () => panel()?.press("allow"), d: () => panel()?.press("deny"),
      m: () => panel()?.focusMessage(), e: () => panel()?.unfold("edit"), f: () => panel()?.unfold("lasting"),
      u: () => this.#toasts.press(),
      "/": () => this.#view.focusSearch?.(),
      Escape: () => this.#dialog.close(),
    };
    for (let n = 1; n <= 9; n++) actions[n] = () => panel()?.choose(n);
    return new Keys(actions);
  }

  async #leave() {
    const { why, url } = await logout();
    if (why) {
      this.#showState(why);
      return;
    }
    await this.#push.leave();
    if (url) location.assign(url);
    else location.reload();
  }

  // Shows the view that the page's address names, by default the inbox.
  #route() {
    const [, name, id] = location.hash.split("/");
    const view = Object.hasOwn(this.#views, name ?? "") && (id || name !== "session") ? name : "inbox";
    if (this.#view !== this.#views[view]) {
      this.#view = this.#views[view];
      this.#main.replaceChildren(this.#view);
    }
    const page = { inbox: "", session: "sessions" }[view] ?? view;
    for (const a of this.#nav.children) {
      if (a.hash === `#/${page}`) a.setAttribute("aria-current", "page");
      else a.removeAttribute("aria-current");
    }
    if (view !== "inbox") this.#dialog.close();
    this.classList.toggle("split", view === "inbox");
    const session = view === "session" ? id : "";
    this.#presence.setSession(session);
    this.#freeze.setContext({ session });
    this.#load();
  }

  #load() {
    if (!this.#link.up) return;
    const id = location.hash.split("/")[2];
    this.#subscribe(this.#view === this.#views.session ? id : "");
    if (this.#view === this.#views.session) {
      this.#view.load(id, () => [...this.#pending.values()].filter((r) => r.session_id === id));
    } else this.#view.load?.();
  }

  // Subscribes to the open session, because nod sends decisions by rules only to the subscribers
  // of a session.
  #subscribe(session) {
    if (session === this.#subscribed) return;
    const ignore = () => {}; // after an error the page only lacks decisions by rules
    if (this.#subscribed) this.#link.ask("session.unsubscribe", { session_id: this.#subscribed }).catch(ignore);
    if (session) this.#link.ask("session.subscribe", { session_id: session }).catch(ignore);
    this.#subscribed = session;
  }

  #showState(text) {
    this.#state.textContent = text;
    this.#state.hidden = !text;
  }

  // After each connection nod sends all pending requests again. The page therefore removes its
  // requests.
  async #up() {
    this.#awaited = 0;
    this.#subscribed = "";
    this.#views.inbox.clear();
    this.#views.session.clear();
    this.#pending.clear();
    this.#setUnlisted(0);
    try {
      await this.#listMore();
      this.#online(true);
      this.#freeze.hidden = false;
      this.#freeze.load();
      this.#push.load();
      this.#load();
      this.#checkOpen();
    } catch (failure) {
      if (failure) this.#showState(failure.message);
    }
  }

  // Subscribes to the inbox. After the first time, this makes the list longer.
  async #listMore() {
    const reply = await this.#link.ask("inbox.subscribe", { limit: this.#window });
    this.#awaited += reply.pending;
    this.#setUnlisted(reply.unlisted);
  }

  async #more() {
    this.#window += windowSize;
    try {
      await this.#listMore();
    } catch (failure) {
      if (failure) this.#showState(failure.message);
    }
  }

  #setUnlisted(n) {
    this.#unlisted = n;
    this.#views.inbox.unlisted = n;
    this.#count();
  }

  #down(reason) {
    this.#presence.disconnected();
    this.#online(false, `Disconnected${reason ? ` (${reason})` : ""}: what you see may be out of date. Trying again…`);
  }

  #loggedOut(message) {
    this.#online(false, message);
    this.#pending.clear();
    this.#views.inbox.clear();
    this.#views.session.clear();
    this.#setUnlisted(0);
    this.#offerLogin();
  }

  #online(yes, text = "") {
    this.#connected = yes;
    this.#showState(text);
    this.#main.classList.toggle("stale", !yes);
    this.#freeze.inert = !yes;
    this.#dialog.panel.online = yes;
    this.#views.session.online = yes;
    this.#cover();
    this.#count();
  }

  // In a narrow window an open request covers the page, so the rest of the page is inert.
  #cover() {
    const covered = !wide.matches && this.#dialog.shows !== "";
    this.#dialog.covers = covered;
    this.#main.inert = !this.#connected || covered;
    this.firstElementChild.inert = covered;
    this.classList.toggle("covered", covered);
  }

  #notified({ action, payload }) {
    sync(payload.server_time);
    const key = keyOf(payload);
    switch (action) {
      case "session.permission.requested":
        if (this.#pending.has(key)) this.#dialog.updateWaiters(payload);
        else if (!payload.new) this.#awaited = Math.max(0, this.#awaited - 1);
        this.#pending.set(key, payload);
        this.#views.inbox.add(payload);
        if (payload.new) this.#notices.tell(payload);
        if (this.#view !== this.#views.inbox) this.#view.add?.(payload);
        break;
      case "session.permission.resolved":
        this.#resolved(key, payload);
        break;
      case "session.permission.decided": // by a rule, without a person
        this.#views.session.decided(payload);
        break;
      case "inbox.count":
        this.#setUnlisted(payload.unlisted);
        break;
      case "server.time":
        if (payload.reachable) this.#freeze.frozen = payload.frozen;
        this.#online(payload.reachable, payload.reachable ? "" : "The inbox cannot reach nod: no answer would arrive.");
        break;
    }
    this.#count();
    this.#checkOpen();
  }

  #resolved(key, { decision, text }) {
    const request = this.#pending.get(key);
    this.#pending.delete(key);
    this.#views.inbox.drop(key);
    if (this.#dialog.shows === key) this.#dialog.ended(text, decision);
    else this.#dialog.panel.forget(key);
    if (request) this.#view.decided?.({ ...request, decision, text });
  }

  // When all pending requests have arrived, an open request that is not among them has ended.
  #checkOpen() {
    const open = this.#dialog.shows;
    if (this.#awaited <= 0 && this.#unlisted === 0 && open && !this.#pending.has(open)) {
      this.#dialog.gone("This has ended while the page was disconnected. The history tells how.");
    }
  }

  #review(request) {
    const same = [...this.#pending.values()].filter((r) => r !== request && r.same === request.same);
    this.#dialog.open(request, same);
    this.#views.inbox.mark(keyOf(request));
    this.#cover();
    this.#dialog.focusFirst();
  }

  #closed(key) {
    this.#cover();
    this.#views.inbox.mark("");
    if (this.#view === this.#views.inbox) this.#views.inbox.focusOn(key);
  }

  // Opens the next request of the list, or the one before.
  #step(by) {
    if (this.#view !== this.#views.inbox || !this.#connected) return;
    const next = this.#views.inbox.beside(this.#dialog.shows, by);
    if (next) this.#review(next);
  }

  async #answer(panel, { request, option, message, extra, others }) {
    const say = (r, extra) => this.#link.ask("permission.respond", {
      session_id: r.session_id, pending_id: r.pending_id, digest: r.digest, waiters: r.waiters,
      option_id: option.option_id, cancelled: false, ...message && { message }, ...extra,
    });
    const { code_word } = extra;
    const alike = others.map((r) => say(r, { code_word }));
    const key = keyOf(request), next = this.#views.inbox.after(key, new Set(others.map(keyOf)));
    const mine = () => panel === this.#dialog.panel ? this.#dialog.shows === key : panel.isConnected;
    try {
      const reply = await say(request, extra);
      const failed = (await Promise.allSettled(alike)).filter((r) => r.status === "rejected").length;
      const left = failed ? ` ${failed} of the others were not answered: look at them again.` : "";
      this.#tell(reply, request);
      if (!mine()) return;
      panel.ended(reply.text + left, reply.decision);
      if (panel === this.#dialog.panel && !failed) this.#advance(key, next);
    } catch (failure) {
      if (!mine()) return;
      if (failure?.details?.decision) panel.late(failure.text, failure.details.decision);
      else panel.failed(failure?.text ?? notConfirmed);
    }
  }

  // Shows the outcome of an answer. A denial can be taken back for as long as the notice is
  // shown.
  #tell({ text, decision }, request) {
    const denial = decision.grant?.effect === "deny" ? decision.grant.grant_id : "";
    this.#toasts.show(`${text.split("\n")[0]}\n${request.summary}`, decision, denial && {
      undo: "Undo",
      act: () => this.#link.ask("grants.revoke", { grant_id: denial }).then(() => undoText, (failure) => failure?.text ?? notConfirmed),
    } || {});
  }

  // After an answer the next request comes up by itself. Without one the outcome stays.
  #advance(key, next) {
    const request = next && this.#pending.get(keyOf(next)) || this.#views.inbox.after(key, new Set([key]));
    if (request) this.#review(request);
  }

  #count() {
    const n = this.#pending.size + this.#unlisted;
    document.title = n ? `(${n}) nod` : "nod";
    this.#nav.firstElementChild.dataset.count = n || "";
    const icon = n ? `icon/${Math.min(n, 100)}` : "icon.svg";
    if (this.#icon.getAttribute("href") !== icon) this.#icon.setAttribute("href", icon);
  }
}

customElements.define("nod-app", App);

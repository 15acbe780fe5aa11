// The list of standing answers.

import { clock, el, sessionLink, when } from "./parts.js";

/** <nod-grants> lists standing answers, newest first, each with a button that ends it. The app
 * sets the property ask to a function that sends a request to nod. */
export class Grants extends HTMLElement {
  #live = el("ul", "rows");
  #ended = el("ul", "rows");
  #status = el("p", "total");
  ask = null;

  connectedCallback() {
    this.#status.setAttribute("role", "status");
    this.replaceChildren(el("h2", "", "Standing answers"),
      el("p", "hint", "What nod answers without asking you again, because a person said so. Revoke what is allowed, or forget a denial, and you are asked again."),
      this.#status, this.#live, el("details", "fold", el("summary", "", "Ended"), this.#ended));
  }

  async load() {
    try {
      const { grants } = await this.ask("grants.list", {});
      const live = grants.filter((g) => g.live);
      this.#live.replaceChildren(...live.map((g) => this.#item(g)));
      this.#ended.replaceChildren(...grants.filter((g) => !g.live).map((g) => this.#item(g)));
      this.#status.textContent = live.length ? "" : "No standing answers: every call is decided by the rules, or asked.";
    } catch (failure) {
      if (failure) this.#status.textContent = failure.message;
    }
  }

  /** decided loads the list again if a decision may have changed it. */
  decided({ decision }) {
    if (decision.grant) this.load();
  }

  #item(g) {
    const denies = g.effect === "deny";
    const meta = el("span", "meta", where(g), el("span", "", `by ${g.by}`), when(g.created_at));
    if (g.uses) meta.append(el("span", "", g.uses));
    if (g.live && g.expires_at) meta.append(clock("until", g.expires_at));
    else meta.append(el("span", "", g.until));
    if (g.question) meta.append(el("span", "", g.question));
    const item = el("li", "grant", el("span", `effect ${denies ? "deny" : "allow"}`, denies ? "denied" : "allowed"), el("span", "covers", g.text));
    if (g.message) item.append(el("p", "line notice", g.message));
    item.append(meta);
    item.dataset.id = g.grant_id;
    if (!g.live) return item;
    const words = g.undo[0].toUpperCase() + g.undo.slice(1);
    const end = el("button", "deny", words);
    end.type = "button";
    end.setAttribute("aria-label", `${words} ${g.text}`);
    end.addEventListener("click", () => this.#end(g, end));
    item.append(end);
    return item;
  }

  async #end(g, button) {
    button.disabled = true;
    try {
      await this.ask("grants.revoke", { grant_id: g.grant_id });
      await this.load();
      this.#status.textContent = `${g.effect === "deny" ? "Forgotten" : "Revoked"}: ${g.text}`;
    } catch (failure) {
      button.disabled = false;
      this.#status.textContent = failure?.text ?? "Not confirmed: nod could not be reached.";
    }
  }
}

// The scope of a standing answer. A session is a link to its page.
function where(g) {
  return g.scope === "agent" ? el("span", "", g.where) : el("span", "", "in session ", sessionLink(g.session_id));
}

customElements.define("nod-grants", Grants);

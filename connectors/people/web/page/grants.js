// What answers by itself: allowed, or denied, until it ends.

import { clock, el, sessionLink, when } from "./parts.js";

/** <nod-grants> lists standing answers, the newest first, and ends them. ask asks nod. */
export class Grants extends HTMLElement {
  #live = el("ul", "rows");
  #ended = el("ul", "rows");
  #note = el("p", "total");
  ask = null;

  connectedCallback() {
    this.#note.setAttribute("role", "status");
    this.replaceChildren(el("h2", "", "Standing answers"),
      el("p", "hint", "What nod answers without asking you again, because a person said so. Revoke what is allowed, or forget a denial, and you are asked again."),
      this.#note, this.#live, el("details", "fold", el("summary", "", "Ended"), this.#ended));
  }

  async load() {
    try {
      const { grants } = await this.ask("grants.list", {});
      const live = grants.filter((g) => g.live);
      this.#live.replaceChildren(...live.map((g) => this.#item(g)));
      this.#ended.replaceChildren(...grants.filter((g) => !g.live).map((g) => this.#item(g)));
      this.#note.textContent = live.length ? "" : "Nothing stands: every call is answered by the rules, or asked.";
    } catch (failure) {
      if (failure) this.#note.textContent = failure.message;
    }
  }

  /** decided reads anew where a decision has changed what stands here. */
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
    const item = el("li", "grant", el("span", `effect ${denies ? "deny" : "allow"}`, denies ? "denied" : "allowed"), el("span", "what", g.text));
    if (g.message) item.append(el("p", "line said", g.message));
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
      this.#note.textContent = `${g.effect === "deny" ? "Forgotten" : "Revoked"}: ${g.text}`;
    } catch (failure) {
      button.disabled = false;
      this.#note.textContent = failure?.text ?? "Not confirmed: nod could not be reached.";
    }
  }
}

// A session's leads to its page.
function where(g) {
  return g.scope === "agent" ? el("span", "", g.where) : el("span", "", "in session ", sessionLink(g.session_id));
}

customElements.define("nod-grants", Grants);

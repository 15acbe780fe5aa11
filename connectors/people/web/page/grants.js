// What is allowed beyond one call.

import { clock, el, sessionLink, when } from "./parts.js";

/** <nod-grants> lists grants and ends them. ask asks nod. */
export class Grants extends HTMLElement {
  #live = el("ul", "rows");
  #ended = el("ul", "rows");
  #note = el("p", "total");
  ask = null;

  connectedCallback() {
    this.#note.setAttribute("role", "status");
    this.replaceChildren(el("h2", "", "Allowed from now on"), this.#note, this.#live,
      el("details", "fold", el("summary", "", "Ended"), this.#ended));
  }

  async load() {
    try {
      const { grants } = await this.ask("grants.list", {});
      const live = grants.filter((g) => g.live);
      this.#live.replaceChildren(...live.map((g) => this.#item(g)));
      this.#ended.replaceChildren(...grants.filter((g) => !g.live).map((g) => this.#item(g)));
      this.#note.textContent = live.length ? "" : "Nothing is allowed beyond one call.";
    } catch (failure) {
      if (failure) this.#note.textContent = failure.message;
    }
  }

  /** decided reads anew where a decision has changed what stands here. */
  decided({ decision }) {
    if (decision.grant) this.load();
  }

  #item(g) {
    const item = el("li", "grant", el("span", "what", g.text),
      el("span", "meta", el("span", "", `${g.agent}${g.lasts}`), el("span", "", `by ${g.by}`), when(g.created_at)));
    item.dataset.id = g.grant_id;
    const meta = item.lastElementChild;
    if (g.session_id) meta.append(sessionLink(g.session_id));
    if (g.revoked_at) meta.append(el("span", "", `revoked by ${g.revoked_by}`));
    if (!g.live) return item;
    if (g.expires_at) meta.append(clock("until", g.expires_at));
    const end = el("button", "deny", "Revoke");
    end.type = "button";
    end.setAttribute("aria-label", `Revoke ${g.text}`);
    end.addEventListener("click", () => this.#revoke(g, end));
    item.append(end);
    return item;
  }

  async #revoke(g, button) {
    button.disabled = true;
    try {
      await this.ask("grants.revoke", { grant_id: g.grant_id });
      await this.load();
      this.#note.textContent = `Revoked: ${g.text}`;
    } catch (failure) {
      button.disabled = false;
      this.#note.textContent = failure?.text ?? "Not confirmed: nod could not be reached.";
    }
  }
}

customElements.define("nod-grants", Grants);

// What a person reads of a request, as nod has laid it out. Everything here is
// set as text, never as markup.

/** el makes an element with a class and children; strings become text. */
export function el(tag, className, ...children) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  e.append(...children);
  return e;
}

/** clock is a live countdown, or an age. */
export function clock(attribute, at) {
  const c = document.createElement("nod-clock");
  c.setAttribute(attribute, at);
  return c;
}

/** parts is a request whole, part by part, in the order of reading. */
export function parts(request) {
  const all = el("dl", "parts");
  for (const part of request.parts) {
    const own = !part.field && !part.quote;
    if (own && part.label === "Answers") continue; // they are the buttons
    const lines = own && part.label === "Expires"
      ? [deadline(request), ...part.lines.slice(1)]
      : part.lines;
    const body = el("dd", part.quote ? "body quote" : "body");
    for (const line of lines) body.append(el("div", "line", line));
    all.append(el("div", part.field ? "part field" : "part", el("dt", "", part.label), body));
  }
  return all;
}

// The countdown stands where nod's own text says how long is left.
function deadline(request) {
  const at = new Date(request.deadline).toISOString().replace("T", " ").slice(0, 19);
  return el("span", "", `${at} UTC, `, clock("until", request.deadline));
}

/** risk is a mark that does not speak by its colour alone. */
export function risk(request) {
  const word = ["low", "medium", "high"].includes(request.risk) ? request.risk : "unknown";
  return el("span", `risk ${word}`, `${word} risk`);
}

/** times says how many identical calls wait for the one answer, if several do. */
export function times(request) {
  if (!request.times) return [];
  return [el("span", "times", `${request.times} · ${request.waiting} identical calls wait`)];
}

/** when is an instant, in this browser's words. */
export function when(at) {
  const t = el("time", "", new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "medium" }));
  t.dateTime = at;
  return t;
}

/** sessionLink leads to a session's page. */
export function sessionLink(id) {
  const a = el("a", "session", id);
  a.href = `#/session/${id}`;
  return a;
}

/** fold is what stands under a line of its own, shown when it is asked for. */
export function fold(line, ...children) {
  return el("details", "fold", el("summary", "", ...line), ...children);
}

/** keyOf tells requests apart: ids are unique in a session only. */
export const keyOf = (r) => `${r.session_id}.${r.pending_id}`;

// The display of a request, in nod's layout. Everything is set as text, never as markup.

/** el makes an element with a class and children; strings become text. */
export function el(tag, className, ...children) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  e.append(...children);
  return e;
}

/** clock returns a <nod-clock>: a countdown ("until") or an age ("since"). */
export function clock(attribute, at) {
  const c = document.createElement("nod-clock");
  c.setAttribute(attribute, at);
  return c;
}

/** parts returns a whole request as elements: its parts, in nod's order. */
export function parts(request) {
  const all = el("dl", "parts");
  for (const part of request.parts) {
    const own = !part.field && !part.quote;
    if (own && part.label === "Answers") continue; // the buttons show them
    const lines = own && part.label === "Expires"
      ? [deadline(request), ...part.lines.slice(1)]
      : part.lines;
    const body = el("dd", part.quote ? "body quote" : "body");
    for (const line of lines) body.append(el("div", "line", line));
    all.append(el("div", part.field ? "part field" : "part", el("dt", "", part.label), body));
  }
  return all;
}

// The deadline with a live countdown, which replaces nod's text of the remaining time.
function deadline(request) {
  const at = new Date(request.deadline).toISOString().replace("T", " ").slice(0, 19);
  return el("span", "", `${at} UTC, `, clock("until", request.deadline));
}

/** risk returns a mark that shows the risk by its text and by its colour. */
export function risk(request) {
  const word = ["low", "medium", "high"].includes(request.risk) ? request.risk : "unknown";
  return el("span", `risk ${word}`, `${word} risk`);
}

/** times returns the number of identical calls that wait for the answer, or nothing
 * for a single call. */
export function times(request) {
  if (!request.times) return [];
  return [el("span", "times", `${request.times} · ${request.waiting} identical calls wait`)];
}

/** when returns a point in time as text, in the browser's format. */
export function when(at) {
  const t = el("time", "", new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "medium" }));
  t.dateTime = at;
  return t;
}

/** sessionLink returns a link to a session's page. */
export function sessionLink(id) {
  const a = el("a", "session", id);
  a.href = `#/session/${id}`;
  return a;
}

/** fold returns content that opens with a click on a summary line. */
export function fold(line, ...children) {
  return el("details", "fold", el("summary", "", ...line), ...children);
}

/** keyOf returns a request's key. The pending id alone is unique only within a session. */
export const keyOf = (r) => `${r.session_id}.${r.pending_id}`;

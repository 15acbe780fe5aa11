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

/** parts returns a whole request as elements, in nod's order: what must be seen before Allow,
 * then end, if there is one, then the rest, of which the ids and the exact input are folded. */
export function parts(request, end) {
  const of = (group) => request.parts.filter((p) => p.group === group && !answers(p));
  return el("div", "parts", list(request, of("essential")), ...end ? [end] : [], list(request, of("about")),
    fold(["Agent, session, ids"], list(request, of("rest"))),
    fold(["Exactly as sent"], list(request, request.exact)));
}

// The answers of a tool call are left out: the buttons show them.
function answers(part) {
  return !part.field && !part.quote && part.label === "Answers";
}

function list(request, all) {
  const dl = el("dl", "part-list");
  for (const part of all) dl.append(part.caption ? caption(part) : one(request, part));
  return dl;
}

function one(request, part) {
  const own = !part.field && !part.quote;
  const lines = part.lines.map((line, i) => pieces(part.spans?.[i] ?? [{ text: line }]));
  if (own && part.label === "Expires") lines[0] = deadline(request, part.lines[0]);
  const short = part.field && !part.quote;
  const body = el("dd", part.quote ? "body quote" : "body");
  for (const line of lines) body.append(el("div", "line", ...line));
  return el("div", `part${part.field ? " field" : ""}${short ? " short" : ""}${part.label ? "" : " bare"}`, el("dt", "", part.label), body);
}

/** quotation returns one part without regard to a request. */
export const quotation = (part) => one(null, part);

// The line below the payload, with the agent and the risk.
function caption(part) {
  return el("div", "part bare", el("dt"), el("dd", "body caption", ...pieces(part.spans[0])));
}

/** captionOf returns the line with a request's agent and risk, for a list. */
export function captionOf(request) {
  return el("span", "caption", ...pieces(request.parts.find((p) => p.caption).spans[0]));
}

// Pieces of a line, each with the class of its style.
function pieces(all) {
  return all.map(({ text, style }) => style ? el("span", `is-${style}`, text) : text);
}

// The deadline with a live countdown, which replaces nod's text of the remaining time.
function deadline(request, text) {
  return [clock("until", request.deadline), ", ", when(request.deadline), text.slice(text.indexOf(";"))];
}

/** risk returns a mark that shows the risk by its text and by its colour. */
export function risk(request) {
  const word = riskClass(request.risk);
  return el("span", `risk ${word}`, `${word} risk`);
}

/** times returns the number of identical calls that wait for the answer, or nothing
 * for a single call. */
export function times(request) {
  if (!request.times) return [];
  return [el("span", "times", `${request.times} · ${request.waiting} identical calls wait`)];
}

/** when returns a point in time as text, in the browser's format and zone. A title has the
 * seconds, the zone and the time in UTC. */
export function when(at) {
  const date = new Date(at);
  const t = el("time", "", date.toLocaleString([], { dateStyle: "medium", timeStyle: "short" }));
  t.dateTime = at;
  t.title = `${date.toLocaleString([], { dateStyle: "medium", timeStyle: "long" })} (${date.toISOString().replace("T", " ").slice(0, 19)} UTC)`;
  return t;
}

/** riskClass returns the class of a risk. A risk that the page does not know counts as
 * unknown, never as low. */
export const riskClass = (risk) => ["low", "medium", "high"].includes(risk) ? risk : "unknown";

/** sessionLink returns a link to a session's page, with the session's label, if it has one. */
export function sessionLink(id, label = "") {
  const a = el("a", "session", label || id);
  a.href = `#/session/${id}`;
  return a;
}

/** fold returns content that opens with a click on a summary line. */
export function fold(line, ...children) {
  return el("details", "fold", el("summary", "", ...line), ...children);
}

/** keyOf returns a request's key. The pending id alone is unique only within a session. */
export const keyOf = (r) => `${r.session_id}.${r.pending_id}`;

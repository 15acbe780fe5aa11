// Shows a request in nod's layout. All content is set as text, never as markup.

/** el makes an element with a class and children. A string becomes a text node. */
export function el(tag, className, ...children) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  e.append(...children);
  return e;
}

/** clock returns a <nod-clock>. It counts down for the attribute "until" and shows an age for
 * "since". */
export function clock(attribute, at) {
  const c = document.createElement("nod-clock");
  c.setAttribute(attribute, at);
  return c;
}

/** parts returns a whole request as elements, in nod's order. The essential parts come first,
 * then the element end if there is one, then the other parts. The ids and the exact input, if nod
 * has it, are folded. */
export function parts(request, end) {
  const of = (group) => request.parts.filter((p) => p.group === group && !answers(p));
  return el("div", "parts", list(request, of("essential")), ...end ? [end] : [], list(request, of("about")),
    fold(["Agent, session, ids"], list(request, of("rest"))),
    ...request.exact.length ? [fold(["Exactly as sent"], list(request, request.exact))] : []);
}

// A tool call's answers are omitted, because the buttons show them.
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
  return el("div", `part${part.field ? " field" : ""}${short ? " short" : ""}${part.look && part.quote ? " look" : ""}${part.label ? "" : " bare"}`, el("dt", "", part.label), body);
}

/** quotation returns one part without regard to a request. */
export const quotation = (part) => one(null, part);

// The headline above the payload, with the risk, or the line below it, with the agent.
function caption(part) {
  return el("div", "part bare", el("dt"), el("dd", "body caption", ...pieces(part.spans[0])));
}

/** captionOf returns a request's agent and its headline in one line. It is for lists. */
export function captionOf(request) {
  const [first, ...others] = request.parts.filter((p) => p.caption).map((p) => pieces(p.spans[0]));
  return el("span", "caption", ...others.flat(), el("span", "is-faint", " · "), ...first);
}

// The pieces of a line. The class of each piece is its style.
function pieces(all) {
  return all.flatMap(({ text, style }) => style ? el("span", `is-${style}`, ...breakable(text)) : breakable(text));
}

// A row of a narrow window ends after a separator, such as the / of a path, rather than in a name. A scheme
// stays with its host.
function breakable(text) {
  return text.split(/(?<=[^\s([{'"][/\\,;|&?([])(?<!:\/\/)(?![/&|])/).flatMap((part, i) => i ? [el("wbr"), part] : part);
}

// The deadline with a live countdown in place of the remaining time that nod wrote.
function deadline(request, text) {
  return [clock("until", request.deadline), ", ", when(request.deadline), text.slice(text.indexOf(";"))];
}

/** risk returns a label for the risk, with a text and a colour. */
export function risk(request) {
  const word = riskClass(request.risk);
  return el("span", `risk ${word}`, `${word} risk`);
}

/** times returns the number of identical calls that wait for the answer. For a single call it
 * returns nothing. */
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

/** outcomeParts returns the line that tells how a request ended. nod writes the time of the decision
 * in UTC; with the decision at hand, the line has it in the browser's format and zone, as when does. */
export function outcomeParts(text, decision = null) {
  const written = decision?.decided_at && text.match(/(?:\d{1,2} [A-Z][a-z]{2} )?\d\d:\d\d UTC/);
  if (!written) return [text];
  const time = when(decision.decided_at), at = new Date(decision.decided_at);
  if (at.toDateString() === new Date().toDateString()) time.textContent = at.toLocaleTimeString([], { timeStyle: "short" });
  return [text.slice(0, written.index), time, text.slice(written.index + written[0].length)];
}

/** outcome returns the line of outcomeParts as a paragraph. */
export const outcome = (text, decision = null) => el("p", "outcome", ...outcomeParts(text, decision));

/** riskClass returns the class of a risk. A risk that the page does not know counts as
 * unknown, never as low. */
export const riskClass = (risk) => ["low", "medium", "high"].includes(risk) ? risk : "unknown";

/** sessionLink returns a link to a session's page, with the session's label, if it has one. */
export function sessionLink(id, label = "") {
  const a = el("a", "session", label || id);
  a.href = `#/session/${id}`;
  return a;
}

/** fold returns content that a click on its summary line opens. */
export function fold(line, ...children) {
  return el("details", "fold", el("summary", "", ...line), ...children);
}

/** keyOf returns a request's key. The pending id alone is unique only within one session. */
export const keyOf = (r) => `${r.session_id}.${r.pending_id}`;

// The client of nod's HTTP API (see nod.d.ts for its contract). It uses fetch alone.

/** NodError is an error of nod or of the connection to it. It allows nothing. */
export class NodError extends Error {
  constructor(code, message, status = 0) {
    super(message);
    this.name = "NodError";
    this.code = code;
    this.status = status;
  }
}

/** NotAllowed is thrown by a guarded tool that may not run. */
export class NotAllowed extends Error {
  constructor(result) {
    super(result.message);
    this.name = "NotAllowed";
    this.result = result;
  }
}

const waitSeconds = 30; // one GET waits this long for a decision
const firstRetry = 250; // milliseconds
const lastRetry = 5000;

export class Nod {
  #url;
  #token;
  #fetch;
  #session;
  #defaults;

  constructor({ url = "http://127.0.0.1:4282", token, session, fetch: own = globalThis.fetch, agentName, project, sessionLabel } = {}) {
    if (!token) throw new TypeError("nod: the token is missing: nod http prints the path of its file");
    if (!session) throw new TypeError("nod: the session is missing: name the conversation or run that asks");
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
    this.#fetch = own;
    this.#session = session;
    this.#defaults = withoutUndefined({ agent_name: agentName, project, session_label: sessionLabel });
  }

  async ask(call, { signal, onAbort = "withdraw" } = {}) {
    call = copyOf(call);
    const request = await this.#request(call);
    const { input, cwd } = call;
    let asked = false;
    try {
      let decision = null;
      for (let retry = new Retry(signal); ; ) {
        try {
          if (!asked) {
            decision = (await this.#submit(request, signal)).decision;
            asked = true;
          } else {
            decision = await this.#await(request, waitSeconds, signal);
          }
          if (decision) return resultOf(decision, request, input, cwd);
          retry = new Retry(signal);
        } catch (err) {
          if (signal?.aborted || !mayPass(err)) throw err;
          await retry.wait();
        }
      }
    } catch (err) {
      if (signal?.aborted && onAbort === "withdraw") {
        // The request may be stored although its receipt did not arrive. If the withdrawal fails, it ends at its deadline.
        await this.withdraw(request.pending_id, { reason: "the app stopped waiting", signal: AbortSignal.timeout(5000) }).catch(() => {});
      }
      throw err;
    }
  }

  guard(name, run, options = {}) {
    return async (input, { toolCallId, signal } = {}) => {
      const result = await this.ask({ ...options, toolName: name, input, toolCallId }, { signal });
      if (!result.allowed) throw new NotAllowed(result);
      return run(result.input, { toolCallId, signal });
    };
  }

  async submit(call, { signal } = {}) {
    call = copyOf(call);
    const request = await this.#request(call);
    const { decision, receipt } = await this.#submit(request, signal);
    return decision ? { id: request.pending_id, result: resultOf(decision, request, call.input, call.cwd) } : { id: request.pending_id, deadline: receipt.deadline };
  }

  async status(id, { wait = 0, signal } = {}) {
    const request = { session_id: this.#session, pending_id: await idOf(id) };
    const decision = await this.#await(request, wait, signal);
    return decision && resultOf(decision, request);
  }

  async withdraw(id, { reason, signal } = {}) {
    const request = { session_id: this.#session, pending_id: await idOf(id) };
    const query = reason ? `?reason=${encodeURIComponent(reason)}` : "";
    const { body } = await this.#call("DELETE", pathOf(request) + query, undefined, signal);
    return resultOf(body, request);
  }

  async notices({ wait = 0, signal } = {}) {
    const { status, body } = await this.#call("GET", `/api/v1/notices?session_id=${encodeURIComponent(this.#session)}&wait=${wait}s`, undefined, signal);
    return status === 204 ? [] : body.notices.map(({ kind, text, pending_id }) => ({ kind, text, id: pending_id }));
  }

  async #request(call) {
    const { toolName, input, toolCallId, id, kind = "tool_call", actionType = "other", title, reason, options, permissions, timeoutSeconds, cwd } = call;
    return withoutUndefined({
      ...this.#defaults, session_id: this.#session, pending_id: await idOf(id ?? toolCallId), kind,
      title: title ?? (toolName ? `Use ${toolName}` : "Permission request"), tool_name: toolName,
      tool_call_id: toolCallId && toolCallId.length <= 256 ? toolCallId : undefined,
      action_type: actionType, action_details: detailsOf(input, cwd), reason, options, permissions, timeout_seconds: timeoutSeconds,
    });
  }

  async #submit(request, signal) {
    const { status, body } = await this.#call("POST", "/api/v1/requests", request, signal);
    if (status === 200) return { decision: body };
    if (status === 202) return { receipt: body };
    throw new NodError("BAD_RESPONSE", `nod: unexpected status ${status}`, status);
  }

  async #await(request, wait, signal) {
    const { status, body } = await this.#call("GET", `${pathOf(request)}?wait=${wait}s`, undefined, signal);
    return status === 204 ? null : body;
  }

  async #call(method, path, json, signal) {
    const headers = { authorization: `Bearer ${this.#token}` };
    if (json !== undefined) headers["content-type"] = "application/json";
    const fetch = this.#fetch;
    let response, text;
    try {
      response = await fetch(this.#url + path, { method, headers, body: json && JSON.stringify(json), signal, redirect: "error" });
      text = await response.text();
    } catch (err) {
      if (signal?.aborted) throw err;
      throw new NodError("UNREACHABLE", `nod: ${this.#url} cannot be reached: ${err.cause?.message ?? err.message}`);
    }
    let body = null;
    try {
      body = text ? JSON.parse(text) : null;
    } catch {
      throw new NodError("BAD_RESPONSE", `nod: status ${response.status}: the response is not JSON`, response.status);
    }
    if (!response.ok) throw new NodError(body?.code ?? "BAD_RESPONSE", body?.message ?? `nod: status ${response.status}`, response.status);
    return { status: response.status, body };
  }
}

/** Retry waits for longer and longer times, until its signal aborts. */
class Retry {
  #next = firstRetry;
  #signal;

  constructor(signal) {
    this.#signal = signal;
  }

  async wait() {
    const milliseconds = this.#next;
    this.#next = Math.min(2 * this.#next, lastRetry);
    await new Promise((resolve, reject) => {
      const timer = setTimeout(done, milliseconds);
      const abort = () => done(this.#signal.reason);
      this.#signal?.addEventListener("abort", abort, { once: true });
      const signal = this.#signal;
      function done(reason) {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        if (reason) reject(reason);
        else resolve();
      }
    });
  }
}

// mayPass reports whether a call may succeed if it is repeated: nod restarts, or the network fails.
function mayPass(err) {
  return err instanceof NodError && (err.code === "UNREACHABLE" || err.code === "UNAVAILABLE");
}

function pathOf(request) {
  return `/api/v1/requests/${request.session_id}.${request.pending_id}`;
}

// copyOf returns the call with the input as nod gets it, so that a change by the app during the wait does
// not run.
function copyOf(call) {
  const input = JSON.parse(JSON.stringify(call.input === undefined ? {} : call.input) ?? "null");
  if (typeof input !== "object" || input === null || Array.isArray(input)) throw new TypeError("nod: the input is not an object");
  return { ...call, input };
}

// nod reads the field "cwd" as the directory of the call, so only the app may set it. A field of the
// model's input with that name gets another one, which no rule matches.
const ownCwd = "cwd, in the input";

function detailsOf(input, cwd) {
  const { cwd: own, ...rest } = input;
  if (own !== undefined) {
    if (ownCwd in rest) throw new TypeError(`nod: the input has a field "${ownCwd}", which nod reserves`);
    rest[ownCwd] = own;
  }
  return cwd === undefined ? rest : { ...rest, cwd };
}

// inputOf reverses detailsOf for an edited input. It returns undefined if the edit cannot be carried out.
function inputOf(edited, cwd) {
  if (typeof edited !== "object" || Array.isArray(edited) || edited.cwd !== cwd) return undefined;
  const { cwd: _, [ownCwd]: own, ...rest } = edited;
  return own === undefined ? rest : { ...rest, cwd: own };
}

// resultOf converts a decision. Only an allow about exactly this request allows.
function resultOf(decision, request, input, cwd) {
  const about = decision?.session_id === request.session_id && decision?.pending_id === request.pending_id;
  const kind = decision?.option_kind;
  const allowed = about && decision.outcome === "allowed" && (kind === undefined || kind === "" || kind === "allow_once" || kind === "allow_always");
  const by = decision?.by?.name ?? "";
  if (allowed) {
    const edited = decision.updated_input !== undefined && decision.updated_input !== null;
    if (edited) input = inputOf(decision.updated_input, cwd ?? (input === undefined ? decision.updated_input.cwd : undefined));
    if (edited && input === undefined) {
      return { allowed: false, id: request.pending_id, outcome: "denied", message: "Allowed with an edit that cannot be carried out.", by };
    }
    return { allowed, id: request.pending_id, outcome: "allowed", edited, input, option: decision.option_id, message: decision.message ?? "", by };
  }
  const outcome = about && decision.outcome !== "allowed" ? decision.outcome : "denied";
  const words = { denied: "Denied", timed_out: "Timed out", withdrawn: "Withdrawn", cancelled: "Dismissed without an answer" }[outcome] ?? "Not allowed";
  const message = words + (by && outcome === "denied" ? ` by ${by}` : "") + (decision?.message ? `: ${decision.message}` : ".");
  return { allowed: false, id: request.pending_id, outcome, message, by };
}

// idOf makes nod's id of a tool call's id: the same id each time, so that a restarted app asks about the
// same request.
async function idOf(id) {
  if (id === undefined || id === "") return crypto.randomUUID();
  if (/^[A-Za-z0-9_-]{1,128}$/.test(id)) return id;
  const sum = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(id));
  return "h-" + Array.from(new Uint8Array(sum).slice(0, 16), (b) => b.toString(16).padStart(2, "0")).join("");
}

function withoutUndefined(fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** The end of a request. Only "allowed" lets the app act. */
export type Outcome = "allowed" | "denied" | "cancelled" | "timed_out" | "withdrawn";

export type ActionType = "command" | "file_write" | "file_read" | "network" | "mcp_tool" | "other";

export interface Option {
  option_id: string;
  name: string;
  kind: "allow_once" | "allow_always" | "reject_once" | "reject_always";
  /** The person must also write a message, which is the answer itself. */
  text?: boolean;
}

/** A call that nod decides. */
export interface Call<Input = unknown> {
  /** The tool's name in rules. Needed for the kind tool_call. */
  toolName?: string;
  /** The tool's input, which people see whole. It must be an object that JSON can hold. */
  input?: Input;
  /** The id that the model gave the call. The request's id is made from it, so that a restarted app that asks about the same call finds its request, and its decision. */
  toolCallId?: string;
  /** The request's own id, in place of one made from toolCallId. Without both, each ask is a new request. */
  id?: string;
  kind?: "tool_call" | "permission" | "question";
  actionType?: ActionType;
  title?: string;
  /** The agent's own explanation, which proves nothing. */
  reason?: string;
  options?: Option[];
  /** For the kind permission, such as "@network" or "@read:/path". */
  permissions?: string[];
  /** The time limit of a request of the kind permission, in seconds. */
  timeoutSeconds?: number;
  /** The directory of a command. Never take it from the model: rules rely on it. */
  cwd?: string;
}

export interface Allowed<Input = unknown> {
  allowed: true;
  id: string;
  outcome: "allowed";
  /** True if an approver or a setting changed the input. */
  edited: boolean;
  /** The input to run, and nothing else. status and withdraw leave it undefined unless it was edited. */
  input: Input;
  /** The id of the chosen option. */
  option?: string;
  /** The approver's words; the answer to an option with text. */
  message: string;
  by: string;
}

export interface Refused {
  allowed: false;
  id: string;
  outcome: Exclude<Outcome, "allowed">;
  /** A sentence for the model, with the approver's words. */
  message: string;
  by: string;
}

export type Result<Input = unknown> = Allowed<Input> | Refused;

/** An error of nod or of the connection to it. It allows nothing. */
export class NodError extends Error {
  /** nod's error code, UNREACHABLE or BAD_RESPONSE. */
  code: string;
  /** The HTTP status; 0 without a response. */
  status: number;
  constructor(code: string, message: string, status?: number);
}

/** Thrown by a guarded tool that may not run. Its message is for the model. */
export class NotAllowed extends Error {
  result: Refused;
  constructor(result: Refused);
}

export interface NodOptions {
  /** The address of nod http; by default http://127.0.0.1:4282. */
  url?: string;
  /** The token from the file that nod http names. */
  token: string;
  /** The conversation or run that asks, 1 to 128 letters, digits, _ or -. Keep it across restarts. */
  session: string;
  fetch?: typeof fetch;
  agentName?: string;
  /** The full path of the project. */
  project?: string;
  sessionLabel?: string;
}

/** News for the agent. Its text may contain words of another agent, in quotation marks. */
export interface Notice {
  kind: "shown" | "undeliverable" | "asked" | "decided" | "gate";
  text: string;
  /** The request that it is about. */
  id?: string;
}

export class Nod {
  constructor(options: NodOptions);
  /**
   * Asks nod and waits for the decision, across restarts of nod and failures of the network. If signal
   * aborts, ask withdraws the request, or leaves it pending with onAbort "leave", and throws the
   * signal's reason. It throws a NodError if nod refuses the request, such as with the code
   * UNDELIVERABLE if no approver can be asked, or CONFLICT if the id belongs to another call.
   */
  ask<Input>(call: Call<Input>, options?: { signal?: AbortSignal; onAbort?: "withdraw" | "leave" }): Promise<Result<Input>>;
  /** Returns a tool that asks first and runs with the allowed input, or throws NotAllowed. */
  guard<Input, Output>(
    name: string,
    run: (input: Input, context: { toolCallId?: string; signal?: AbortSignal }) => Output | Promise<Output>,
    options?: Omit<Call<Input>, "toolName" | "input" | "toolCallId" | "id">,
  ): (input: Input, context?: { toolCallId?: string; signal?: AbortSignal }) => Promise<Output>;
  /** Asks once and returns at once: with the result if nod has decided, or with the deadline. */
  submit<Input>(call: Call<Input>, options?: { signal?: AbortSignal }): Promise<{ id: string; result: Result<Input> } | { id: string; deadline: string }>;
  /** Returns the result of a request, or null if it is pending after wait seconds (at most 600). */
  status(id: string, options?: { wait?: number; signal?: AbortSignal }): Promise<Result | null>;
  /** Withdraws a request and returns its result: withdrawn, or the earlier decision. */
  withdraw(id: string, options?: { reason?: string; signal?: AbortSignal }): Promise<Result>;
  /**
   * Returns the session's notices, oldest first, which nod then forgets: those that it has kept or, if
   * there are none, the next ones within wait seconds (at most 600). A notice decides nothing.
   */
  notices(options?: { wait?: number; signal?: AbortSignal }): Promise<Notice[]>;
}

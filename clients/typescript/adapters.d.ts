import type { Call, Nod } from "./nod.js";

/** GuardOptions are the fields of the request that do not come from the tool call. */
export type GuardOptions = Partial<Omit<Call, "toolName" | "input" | "toolCallId">>;

/**
 * aiSdkTools returns the tools of the AI SDK so that each execute asks nod first. After a denial execute throws
 * NotAllowed, and the SDK gives the model its message. A tool without execute stays as it is.
 */
export function aiSdkTools<Tools extends Record<string, any>>(nod: Nod, tools: Tools, options?: GuardOptions): Tools;

/** openAiAgentsTool returns the definition for tool() of OpenAI Agents so that execute asks nod first. After a denial the model reads its words. */
export function openAiAgentsTool<Definition extends { name: string; execute: (...args: any[]) => any }>(nod: Nod, definition: Definition, options?: GuardOptions): Definition;

/** langChainFunc returns the function for tool() of LangChain and LangGraph so that it asks nod first. After a denial the model reads its words. */
export function langChainFunc<Input, Config, Output>(nod: Nod, name: string, func: (input: Input, config: Config) => Output | Promise<Output>, options?: GuardOptions): (input: Input, config: Config) => Promise<Output | string>;

/** mastraTool returns the definition for createTool() of Mastra so that execute asks nod first. After a denial the model reads its words. */
export function mastraTool<Definition extends { id: string; execute?: (...args: any[]) => any }>(nod: Nod, definition: Definition, options?: GuardOptions): Definition;

/** claudeCanUseTool returns a canUseTool for the Claude Agent SDK. An error of nod rejects, and the SDK then runs nothing. */
export function claudeCanUseTool(nod: Nod, options?: GuardOptions): (
  toolName: string, input: Record<string, unknown>, call?: { signal?: AbortSignal; toolUseID?: string },
) => Promise<{ behavior: "allow"; updatedInput: Record<string, unknown> } | { behavior: "deny"; message: string }>;

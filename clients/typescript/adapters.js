// Adapters for agent frameworks (see adapters.d.ts for their contracts). They import no framework.
import { NotAllowed } from "./nod.js";

export function aiSdkTools(nod, tools, options) {
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => {
    if (!tool.execute) return [name, tool];
    const guarded = async (input, call) => {
      const ask = nod.guard(name, (allowed) => tool.execute(allowed, call), options);
      return ask(input, { toolCallId: call.toolCallId, signal: call.abortSignal });
    };
    return [name, { ...tool, execute: guarded }];
  }));
}

export function openAiAgentsTool(nod, definition, options) {
  const { name, execute } = definition;
  const guarded = (input, context, details) =>
    told(nod.guard(name, (allowed) => execute(allowed, context, details), options)(input, { toolCallId: details?.toolCall?.callId, signal: details?.signal }));
  return { ...definition, execute: guarded };
}

export function langChainFunc(nod, name, func, options) {
  return (input, config) =>
    told(nod.guard(name, (allowed) => func(allowed, config), options)(input, { toolCallId: config?.toolCall?.id, signal: config?.signal }));
}

export function mastraTool(nod, definition, options) {
  const { id, execute } = definition;
  const guarded = (input, context) =>
    told(nod.guard(id, (allowed) => execute(allowed, context), options)(input, { toolCallId: context?.agent?.toolCallId, signal: context?.abortSignal }));
  return { ...definition, execute: guarded };
}

export function claudeCanUseTool(nod, options) {
  return async (toolName, input, { signal, toolUseID } = {}) => {
    const result = await nod.ask({ ...options, toolName, input, toolCallId: toolUseID }, { signal });
    return result.allowed ? { behavior: "allow", updatedInput: result.input } : { behavior: "deny", message: result.message };
  };
}

// told returns the words of a denial as the tool's result, so that the model reads them. Other errors stay
// errors: the tool did not run.
async function told(running) {
  try {
    return await running;
  } catch (err) {
    if (err instanceof NotAllowed) return err.message;
    throw err;
  }
}

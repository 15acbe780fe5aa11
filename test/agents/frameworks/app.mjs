// The program of the framework tests. It runs one framework with a fake model, which calls the tool refund
// once, and prints the input with which the tool ran and the words that the model got.
const { Nod } = await import(process.env.NOD_CLIENT + "/nod.js");
const adapters = await import(process.env.NOD_CLIENT + "/adapters.js");
const { z } = await import("zod");

const [framework, id] = process.argv.slice(2);
const nod = new Nod({ url: process.env.NOD_HTTP, token: process.env.NOD_TOKEN, session: id });
const input = { amount: 40 };
const schema = z.object({ amount: z.number() });
let ran = null;
const refund = async (allowed) => {
  ran = allowed;
  return "paid";
};

const frameworks = {
  async "ai-sdk"() {
    const { generateText, stepCountIs, tool } = await import("ai");
    const { MockLanguageModelV3 } = await import("ai/test");
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    let heard = "";
    let calls = 0;
    const model = new MockLanguageModelV3({
      doGenerate: async ({ prompt }) => {
        if (calls++ === 0) {
          const call = { type: "tool-call", toolCallId: id, toolName: "refund", input: JSON.stringify(input) };
          return { content: [call], finishReason: { unified: "tool-calls" }, usage, warnings: [] };
        }
        heard = JSON.stringify(prompt);
        return { content: [{ type: "text", text: "Done." }], finishReason: { unified: "stop" }, usage, warnings: [] };
      },
    });
    const tools = adapters.aiSdkTools(nod, { refund: tool({ inputSchema: schema, execute: refund }) });
    await generateText({ model, prompt: "go on", tools, stopWhen: stepCountIs(3) });
    return heard;
  },

  async "openai-agents"() {
    const { Agent, Runner, Usage, tool } = await import("@openai/agents");
    let heard = "";
    let calls = 0;
    const model = {
      async getResponse(request) {
        const done = { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: "Done." }] };
        const call = { type: "function_call", callId: id, name: "refund", arguments: JSON.stringify(input), status: "completed" };
        if (calls++ > 0) heard = JSON.stringify(request.input);
        return { usage: new Usage(), output: [heard ? done : call], responseId: `r${calls}` };
      },
    };
    const definition = { name: "refund", description: "pays back", parameters: schema, execute: refund };
    const agent = new Agent({ name: "a", model, tools: [tool(adapters.openAiAgentsTool(nod, definition))] });
    await new Runner({ tracingDisabled: true }).run(agent, "go on");
    return heard;
  },

  async langchain() {
    const { tool } = await import("langchain");
    const guarded = tool(adapters.langChainFunc(nod, "refund", refund), { name: "refund", description: "pays back", schema });
    const message = await guarded.invoke({ name: "refund", args: input, id: id, type: "tool_call" });
    return JSON.stringify(message);
  },

  async mastra() {
    const { createTool } = await import("@mastra/core/tools");
    const guarded = createTool(adapters.mastraTool(nod, { id: "refund", description: "pays back", inputSchema: schema, execute: refund }));
    return JSON.stringify(await guarded.execute(input, { agent: { toolCallId: id, messages: [] } }));
  },
};

const heard = await frameworks[framework]();
console.log(JSON.stringify({ ran, heard }));

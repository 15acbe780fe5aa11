// A call runs only with the input that nod has allowed. OpenClaw also blocks a call if this handler fails or
// takes longer than its time limit.
async function decide(event: any, ctx: any) {
	const hooks = hooksAt("PreToolUse");
	if (hooks.length === 0) {
		return { block: true, blockReason: "nod's hook is missing in its plugin: run nod install openclaw" };
	}
	// Some calls of exec run JavaScript: their kind makes them another tool.
	const toolName = event.toolKind || event.toolInputKind ? `${event.toolName}.${event.toolKind || event.toolInputKind}` : event.toolName;
	let params = event.params;
	for (const hook of hooks) {
		let reply: Reply;
		try {
			const input = { ...told("PreToolUse", ctx), tool_use_id: event.toolCallId ?? ctx.toolCallId, tool_name: toolName, tool_input: params };
			reply = JSON.parse(await run(hook, input, ctx.abortSignal)).hookSpecificOutput;
		} catch (error) {
			return { block: true, blockReason: `nod did not decide this call: ${(error as Error).message}` };
		}
		if (reply?.permissionDecision !== "allow") {
			return { block: true, blockReason: reply?.permissionDecisionReason || "Not allowed by nod." };
		}
		params = reply.updatedInput ?? params;
	}
	return { params };
}

function told(event: string, ctx: any) {
	return { hook_event_name: event, session_id: ctx.sessionId ?? ctx.sessionKey };
}

export default {
	id: "nod",
	name: "nod",
	register(api: any) {
		// The last handler's parameters count, so that no other plugin changes what nod has allowed.
		api.on("before_tool_call", decide, { priority: -1000000, timeoutMs: 24 * 60 * 60 * 1000 });
		api.on("session_end", async (_event: any, ctx: any) => {
			for (const hook of hooksAt("SessionEnd")) {
				await run(hook, told("SessionEnd", ctx)).catch(() => {}); // OpenClaw goes on all the same
			}
		});
	},
};

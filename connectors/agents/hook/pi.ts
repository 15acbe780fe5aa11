export default function (pi: any) {
	const told = (event: string, ctx: any) => ({ hook_event_name: event, session_id: ctx.sessionManager.getSessionId(), cwd: ctx.cwd });

	// A call runs only if nod has allowed it. pi also blocks a call if this function throws.
	pi.on("tool_call", async (event: any, ctx: any) => {
		const hooks = hooksAt("PreToolUse");
		if (hooks.length === 0) {
			return { block: true, reason: "nod's hook is missing in its extension: run nod install pi" };
		}
		for (const hook of hooks) {
			let reply: Reply;
			try {
				const input = { ...told("PreToolUse", ctx), tool_use_id: event.toolCallId, tool_name: event.toolName, tool_input: event.input };
				reply = JSON.parse(await run(hook, input, ctx.signal)).hookSpecificOutput;
			} catch (error) {
				return { block: true, reason: `nod did not decide this call: ${(error as Error).message}` };
			}
			if (reply?.permissionDecision !== "allow") {
				return { block: true, reason: reply?.permissionDecisionReason || "Not allowed by nod." };
			}
			if (reply.updatedInput) {
				for (const name of Object.keys(event.input)) {
					delete event.input[name];
				}
				Object.assign(event.input, reply.updatedInput);
			}
		}
	});

	pi.on("session_shutdown", async (_event: any, ctx: any) => {
		for (const hook of hooksAt("SessionEnd")) {
			await run(hook, told("SessionEnd", ctx)).catch(() => {}); // pi ends all the same
		}
	});
}

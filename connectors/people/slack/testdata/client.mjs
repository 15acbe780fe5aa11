// An app on Slack's own libraries. It uses what nod's connector uses: a message that is edited, buttons, a
// dialog, a message for one person, and a command.
import { createRequire } from "node:module";

const [base, modules] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { SocketModeClient, LogLevel } = require("@slack/socket-mode");
const { WebClient } = require("@slack/web-api");

const options = { slackApiUrl: base + "/", logLevel: LogLevel.ERROR };
const web = new WebClient(process.env.BOT_TOKEN, options);
const app = new SocketModeClient({ appToken: process.env.APP_TOKEN, logLevel: LogLevel.ERROR, clientOptions: options });

const plain = (text) => ({ type: "plain_text", text });
const rich = (text) => [{ type: "rich_text", elements: [{ type: "rich_text_section", elements: [{ type: "text", text }] }] }];
const whisper = (channel, user, text) => web.chat.postEphemeral({ channel, user, text, blocks: rich(text), parse: "none" });

app.on("interactive", async ({ ack, body }) => {
	await ack();
	if (body.type === "view_submission") {
		await whisper("D" + body.user.id, body.user.id, "heard " + body.view.state.values.words.words.value);
		return;
	}
	const element = { type: "plain_text_input", action_id: "words", multiline: true, max_length: 3000 };
	await web.views.open({ trigger_id: body.trigger_id, view: {
		type: "modal", callback_id: "why", private_metadata: "m", title: plain("Deny"), submit: plain("Deny"), close: plain("Close"),
		blocks: [{ type: "input", block_id: "words", label: plain("Why?"), element }],
	} });
});
app.on("slash_commands", async ({ ack, body }) => {
	await ack();
	await whisper(body.channel_id, body.user_id, "commanded " + body.text);
});
await app.start();

const quiet = { parse: "none", unfurl_links: false, unfurl_media: false };
const sent = await web.chat.postMessage({ channel: process.env.PERSON, text: "asks", blocks: rich("make"), ...quiet });
const row = { type: "actions", block_id: "answer0", elements: [{ type: "button", text: plain("Why"), action_id: "a", value: "why" }] };
await web.chat.update({ channel: sent.channel, ts: sent.ts, text: "asks", blocks: [...rich("make"), row], parse: "none" });

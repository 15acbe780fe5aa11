// A bot on discord.js. It uses what nod's connector uses: a message that is edited to have components,
// buttons, a modal, replies for one person, and a command.
import { createRequire } from "node:module";

const [base, modules] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { ActionRowBuilder, ButtonBuilder, ButtonStyle, Client, LabelBuilder, MessageFlags, ModalBuilder, TextDisplayBuilder, TextInputBuilder, TextInputStyle } = require("discord.js");

const bot = new Client({ intents: 0, rest: { api: base.replace(/\/v10$/, ""), version: "10" } });
const components = (text, ...rows) => [new TextDisplayBuilder().setContent(text), ...rows];
const whisper = (text) => ({ flags: MessageFlags.Ephemeral | MessageFlags.IsComponentsV2, components: components(text), allowedMentions: { parse: [] } });

bot.on("interactionCreate", async (i) => {
	if (i.isModalSubmit()) {
		await i.reply(whisper("heard " + i.fields.getTextInputValue("words") + " under " + i.message.id));
	} else if (i.isButton() && i.customId === "why") {
		const field = new TextInputBuilder().setCustomId("words").setStyle(TextInputStyle.Paragraph).setMaxLength(4000);
		const label = new LabelBuilder().setLabel("Why?").setDescription("The agent reads it.").setTextInputComponent(field);
		await i.showModal(new ModalBuilder().setCustomId("why").setTitle("Deny").addLabelComponents(label));
	} else if (i.isButton()) {
		await i.deferUpdate();
		await i.followUp(whisper("pressed"));
	} else {
		await i.deferReply({ flags: MessageFlags.Ephemeral });
		const { flags, ...rest } = whisper("commanded " + i.options.getString("text"));
		await i.editReply({ ...rest, flags: MessageFlags.IsComponentsV2 });
	}
});
await bot.login(process.env.TOKEN);

const chat = await bot.rest.post("/users/@me/channels", { body: { recipient_id: process.env.PERSON } });
const sent = await bot.rest.post(`/channels/${chat.id}/messages`, { body: { content: "asks", nonce: "1", enforce_nonce: true, allowed_mentions: { parse: [] } } });
const button = (id, label, style) => new ButtonBuilder().setCustomId(id).setLabel(label).setStyle(style);
const row = new ActionRowBuilder().addComponents(button("why", "Why", ButtonStyle.Danger), button("x", "X", ButtonStyle.Success));
await bot.rest.patch(`/channels/${chat.id}/messages/${sent.id}`, { body: {
	content: null, flags: MessageFlags.IsComponentsV2, components: components("**Asks:** `make`", row).map((c) => c.toJSON()), allowed_mentions: { parse: [] },
} });

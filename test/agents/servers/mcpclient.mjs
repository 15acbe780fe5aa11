// An MCP client with the official SDK. It asks for log messages, calls the tool approve of nod mcp, and prints
// each log message and at last the result, one JSON value a line.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "test", version: "1" });
client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => console.log(JSON.stringify(params)));
await client.connect(new StdioClientTransport({ command, args }));
await client.setLoggingLevel("info");
const result = await client.callTool({ name: "approve", arguments: { tool_name: "Deploy", input: { to: "production" } } });
console.log(JSON.stringify(result.content));
await client.close();

// The program of the tests: it makes one call of the client, checks each HTTP exchange against the
// OpenAPI document of the server, and prints the result as one line of JSON.
import { Nod, NodError, NotAllowed } from "./nod.js";

const url = process.env.NOD_HTTP;
const document = await (await fetch(`${url}/openapi.json`)).json();
const fields = Object.keys(document.components.schemas.request.properties);

async function checked(address, init) {
  const path = new URL(address).pathname.replace(/^(\/api\/v1\/requests\/).+/, "$1{id}");
  const described = document.paths[path]?.[init.method.toLowerCase()];
  if (!described) throw new Error(`${init.method} ${path} is not described`);
  for (const name of Object.keys(init.body ? JSON.parse(init.body) : {})) {
    if (!fields.includes(name)) throw new Error(`the request has no field ${name}`);
  }
  for (const name of new URL(address).searchParams.keys()) {
    if (!described.parameters.some((p) => p.in === "query" && p.name === name)) throw new Error(`${path} has no parameter ${name}`);
  }
  const response = await fetch(address, init);
  if (init.body && call.input) call.input.later = true; // the app changes its input while it waits
  if (!described.responses[response.status]) throw new Error(`${init.method} ${path}: the status ${response.status} is not described`);
  return response;
}

const [what, text] = process.argv.slice(2);
const call = JSON.parse(text);
const nod = new Nod({ url, token: process.env.NOD_TOKEN, session: call.session, fetch: checked });
let out;
try {
  if (what === "ask") out = await nod.ask(call);
  else if (what === "submit") out = await nod.submit(call);
  else if (what === "status") out = await nod.status(call.id, { wait: call.wait });
  else if (what === "withdraw") out = await nod.withdraw(call.id, { reason: "not needed" });
  else if (what === "notices") out = { notices: await nod.notices({ wait: call.wait }) };
  else if (what === "abort") out = await nod.ask(call, { signal: AbortSignal.timeout(call.after) });
  else out = { ran: await nod.guard(call.toolName, (input) => input)(call.input, { toolCallId: call.toolCallId }) };
} catch (err) {
  out = { error: err.name, code: err instanceof NodError ? err.code : "", message: err.message, refused: err instanceof NotAllowed };
}
console.log(JSON.stringify(out));

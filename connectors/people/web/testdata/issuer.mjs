// An issuer for the tests: oidc-provider with one client, accounts that the tests can change, and
// its own pages for login and consent. Usage: node issuer.mjs MODULES REDIRECT LOGGED_OUT, with
// the client's secret in SECRET. It prints the issuer's address and that of the route with which
// the tests change an account.
import { createServer } from "node:http";

const [modules, redirect, loggedOut] = process.argv.slice(2);
const { Provider } = await import(`${modules}/node_modules/oidc-provider/lib/index.js`);

const accounts = new Map([["s-ann", { name: "Ann", groups: ["nod-ops", "staff"] }]]);
const listens = (server) => new Promise((done) => server.listen(0, "127.0.0.1", () => done(`http://127.0.0.1:${server.address().port}`)));

let handle = (_, res) => res.writeHead(503).end();
const issuer = await listens(createServer((req, res) => handle(req, res)));
handle = new Provider(issuer, {
  clients: [{
    client_id: "nod", client_secret: process.env.SECRET, redirect_uris: [redirect], post_logout_redirect_uris: [loggedOut],
    grant_types: ["authorization_code", "refresh_token"], response_types: ["code"], token_endpoint_auth_method: "client_secret_basic",
  }],
  scopes: ["openid", "offline_access", "profile", "groups"],
  claims: { openid: ["sub"], profile: ["name"], groups: ["groups"] },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  findAccount: (_, id) => {
    const account = accounts.get(id);
    return account && { accountId: id, claims: () => ({ sub: id, ...account }) };
  },
}).callback();

const control = await listens(createServer(async (req, res) => {
  let body = "";
  for await (const part of req) body += part;
  const { id, account } = JSON.parse(body);
  if (account) accounts.set(id, account);
  else accounts.delete(id);
  res.end();
}));
console.log(issuer, control);

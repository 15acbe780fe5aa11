// An issuer made of npm's oidc-provider: node provider.mjs MODULES. It prints its URL.
import { createServer } from "node:http";
import { generateKeyPairSync } from "node:crypto";

const { Provider } = await import(`${process.argv[2]}/node_modules/oidc-provider/lib/index.js`);

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      { client_id: "web", client_secret: "web-secret", grant_types: ["client_credentials"], redirect_uris: [], response_types: [] },
      { client_id: "evil", client_secret: "evil-secret", grant_types: ["client_credentials"], redirect_uris: [], response_types: [] },
    ],
    jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kid: "rsa", use: "sig", alg: "RS256" }] },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, resource) => ({
          scope: "", audience: resource.slice("urn:".length), accessTokenFormat: "jwt",
          accessTokenTTL: resource === "urn:brief" ? 1 : 600, jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
    extraTokenClaims: (_, token) => ({ repository: `acme/${token.clientId}` }),
  });
  server.on("request", provider.callback());
  console.log(issuer);
});

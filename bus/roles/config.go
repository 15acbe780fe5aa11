package roles

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxPayload is the longest message that the server accepts. It is above
// schemas.MaxPayloadBytes.
const MaxPayload = 1 << 20

// The fields of the accounts in the configuration. EDGE imports from STORE, and OBSERVE from both;
// nothing else passes between accounts. A reply through an import is delivered in the importing
// account, so no reply subject can direct the server's reply to a subject of STORE.
//
// In an account without JetStream, the server answers $JS.API requests with an error before an
// import can answer. Mappings to other subjects avoid this. The server applies mappings before
// it checks rights, so rights name the mapped subjects.
const edgeImports = `    imports: [
      {service: {account: STORE, subject: "$JS.API.CONSUMER.MSG.NEXT.permission_prompts.*"}}
      {service: {account: STORE, subject: "$JS.API.CONSUMER.INFO.permission_prompts.*"}, to: "_NOD.consumer_info.*"}
      {service: {account: STORE, subject: "$JS.ACK.permission_prompts.>"}}
      {service: {account: STORE, subject: "$JS.ACK.*.*.permission_prompts.>"}}
    ]
    mappings: {
      "$JS.API.CONSUMER.INFO.permission_prompts.*": "_NOD.consumer_info.$1"
    }
`

func storeFields() string {
	return `    jetstream: enabled
    exports: [
      {service: "$JS.API.CONSUMER.MSG.NEXT.permission_prompts.*", response: stream, accounts: [EDGE]}
      {service: "$JS.API.CONSUMER.INFO.permission_prompts.*", accounts: [EDGE]}
      {service: "$JS.ACK.permission_prompts.>", accounts: [EDGE]}
      {service: "$JS.ACK.*.*.permission_prompts.>", accounts: [EDGE]}
` + storeObserved() + "    ]\n"
}

func edgeFields() string { return edgeImports + "    exports: [\n" + edgeObserved() + "    ]\n" }

type accountFields struct {
	name   Account
	fields string
}

// Config is a nats-server configuration: the users with their rights, and the directory of the
// streams. The embedded server and separate NATS servers read the same text.
type Config struct {
	// Users are the users that may connect, each with its key. Without users the server
	// requires no keys and has one account.
	Users []User
	// Admitting are those users of the token service that the server asks about clients without a
	// key. A server takes a change of them only at its start.
	Admitting []User
	// StoreDir is the directory of the streams. If it is empty, the file that includes this
	// text configures JetStream.
	StoreDir string
	// SyncInterval is the longest time between the acknowledgement of a write and its sync to
	// disk; 0 means that every write is synced before it is acknowledged.
	SyncInterval time.Duration
	// EngineInProcess lets engines use the stores only from the server's own process.
	EngineInProcess bool
}

// String returns the configuration as nats-server reads it. It contains no secret.
func (c Config) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "max_payload: %d\n", MaxPayload)
	if c.StoreDir != "" {
		interval := "always"
		if c.SyncInterval > 0 {
			interval = strconv.Quote(c.SyncInterval.String())
		}
		fmt.Fprintf(&b, "jetstream {\n  store_dir: %q\n  sync_interval: %s\n}\n", c.StoreDir, interval)
	}
	if len(c.Users) == 0 {
		return b.String()
	}
	accounts := []accountFields{{Store, storeFields()}, {Edge, edgeFields()}, {Observe, observeFields()}}
	if callout := c.callout(); callout != "" {
		b.WriteString(callout)
		accounts = append(accounts, accountFields{name: Tokens})
	}
	b.WriteString("accounts {\n")
	for _, a := range accounts {
		fmt.Fprintf(&b, "  %s {\n%s    users: [\n", a.name, a.fields)
		for _, u := range c.Users {
			if u.Account() == a.name {
				writeUser(&b, u, c.EngineInProcess && u.ID.Role == EngineStore)
			}
		}
		b.WriteString("    ]\n  }\n")
	}
	b.WriteString("}\n")
	return b.String()
}

func writeUser(b *strings.Builder, u User, inProcess bool) {
	fmt.Fprintf(b, "      # %s\n      {nkey: %s", u.ID, u.PublicKey)
	if inProcess {
		b.WriteString(", allowed_connection_types: [IN_PROCESS]")
	}
	if p := u.Permissions(); !p.All {
		b.WriteString(", permissions: {\n")
		writeSubjects(b, "publish", p.Publish, p.DenyPublish)
		writeSubjects(b, "subscribe", p.Subscribe, nil)
		if p.Responses {
			b.WriteString("        allow_responses: true\n")
		}
		b.WriteString("      }")
	}
	b.WriteString("}\n")
}

// writeSubjects writes an allow and a deny list. For an empty allow list it denies everything,
// because to the server a missing allow list means "everything".
func writeSubjects(b *strings.Builder, verb string, allow, deny []string) {
	if len(allow) == 0 {
		deny = []string{">"}
	}
	fmt.Fprintf(b, "        %s: {allow: %s, deny: %s}\n", verb, quoteAll(allow), quoteAll(deny))
}

func quoteAll(subjects []string) string {
	quoted := make([]string, len(subjects))
	for i, s := range subjects {
		quoted[i] = strconv.Quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

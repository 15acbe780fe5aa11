package roles

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
)

// MaxPayload is the longest message that the server accepts. It is greater than schemas.MaxPayloadBytes.
const MaxPayload = 1 << 20

// ConnectionTypes lists the kinds of connection that a key may make, all of them as a client. A leaf node
// is not among them. With the same key it would have more rights, because the server accepts from a leaf
// node every acknowledgement of a prompt ($JS.ACK.>), even for another connector.
func ConnectionTypes() []string {
	return []string{jwt.ConnectionTypeStandard, jwt.ConnectionTypeWebsocket, jwt.ConnectionTypeInProcess}
}

// Config makes a nats-server configuration: the users with their rights, and the directory of the
// streams. The embedded server and separate NATS servers read the same text.
type Config struct {
	// Users are the users that may connect, each with its key. Without users the server
	// requires no keys and has one account.
	Users []User
	// Admitting lists the token services that the server asks about clients without a key. If they
	// change, the server must start again.
	Admitting []User
	// StoreDir is the directory of the streams. If it is empty, the operator configures JetStream in the
	// file that includes this text.
	StoreDir string
	// SyncInterval is the longest time between the acknowledgement of a write and its sync to disk. With
	// 0, the server syncs each write before it acknowledges the write.
	SyncInterval time.Duration
	// EngineInProcess lets engines use the stores only from the server's own process.
	EngineInProcess bool
}

// String returns the configuration in the format of nats-server. It contains no secret.
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
	accounts := []Account{Store, Edge, Observe}
	if callout := c.callout(); callout != "" {
		b.WriteString(callout)
		accounts = append(accounts, Tokens)
	}
	b.WriteString("accounts {\n")
	for _, a := range accounts {
		fmt.Fprintf(&b, "  %s {\n", a)
		writeAccount(&b, a)
		b.WriteString("    users: [\n")
		for _, u := range c.Users {
			if u.Account() == a {
				writeUser(&b, u, c.EngineInProcess && u.ID.Role == EngineStore)
			}
		}
		b.WriteString("    ]\n  }\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// writeAccount writes the imports, exports and mappings of an account.
func writeAccount(b *strings.Builder, a Account) {
	if a == Store {
		b.WriteString("    jetstream: enabled\n")
	}
	var imports, exports, maps strings.Builder
	for _, s := range shares() {
		if s.to == a {
			fmt.Fprintf(&imports, "      {%s: {account: %s, subject: %q}", s.kind(), s.from, s.subject)
			if s.local != "" {
				fmt.Fprintf(&imports, ", to: %q", s.local)
			}
			imports.WriteString("}\n")
		}
		if s.from == a {
			options := ""
			if s.replies {
				options = "response: stream, "
			}
			fmt.Fprintf(&exports, "      {%s: %q, %saccounts: [%s]}\n", s.kind(), s.subject, options, s.to)
		}
	}
	for _, m := range mappings(a) {
		fmt.Fprintf(&maps, "      %q: %q\n", m.request, numbered(m.mapped))
	}
	writeBlock(b, "imports: [", &imports, "]")
	writeBlock(b, "mappings: {", &maps, "}")
	writeBlock(b, "exports: [", &exports, "]")
}

func writeBlock(b *strings.Builder, begin string, lines *strings.Builder, end string) {
	if lines.Len() > 0 {
		fmt.Fprintf(b, "    %s\n%s    %s\n", begin, lines, end)
	}
}

func writeUser(b *strings.Builder, u User, inProcess bool) {
	fmt.Fprintf(b, "      # %s\n      {nkey: %s", u.ID, u.PublicKey)
	types := ConnectionTypes()
	if inProcess {
		types = []string{jwt.ConnectionTypeInProcess}
	}
	fmt.Fprintf(b, ", allowed_connection_types: [%s]", strings.Join(types, ", "))
	if p := u.Permissions(); !p.All {
		rights := p.JWT()
		b.WriteString(", permissions: {\n")
		writeSubjects(b, "publish", rights.Pub)
		writeSubjects(b, "subscribe", rights.Sub)
		if p.Responses {
			b.WriteString("        allow_responses: true\n")
		}
		b.WriteString("      }")
	}
	b.WriteString("}\n")
}

func writeSubjects(b *strings.Builder, verb string, p jwt.Permission) {
	fmt.Fprintf(b, "        %s: {allow: %s, deny: %s}\n", verb, quoteAll(p.Allow), quoteAll(p.Deny))
}

func quoteAll(subjects []string) string {
	quoted := make([]string, len(subjects))
	for i, s := range subjects {
		quoted[i] = strconv.Quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

package roles_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

func everybody() []roles.ID {
	return append(roles.First(), roles.ID{Role: roles.Observer}, roles.ConnectorID("web"), roles.ConnectorID("telegram"),
		roles.ConnectorID("tele"), roles.AgentID("ada"), roles.AgentID("telegram"), roles.AgentID("owner"))
}

func TestParseIDReadsOnlyValidNames(t *testing.T) {
	for _, id := range everybody() {
		got, err := roles.ParseID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, got)
	}
	for _, name := range []string{
		"", "agent", "agent-", "agent-a b", "agent-a.b", "agent-*", "agent->", "connector-", "connector-terminal",
		"connector-web", "inbox", "inbox-x", "Owner", "owner2", "agent-" + strings.Repeat("x", 129),
	} {
		_, err := roles.ParseID(name)
		requireOneLine(t, err)
	}
	require.Error(t, roles.ID{Role: roles.Engine, Name: "x"}.Check())
	require.Error(t, roles.ID{Role: roles.Inbox, Name: "telegram"}.Check())
}

func TestInboxPrefixesDoNotOverlap(t *testing.T) {
	seen := map[string]roles.ID{}
	for _, id := range everybody() {
		prefix := id.InboxPrefix() + "."
		for other, whose := range seen {
			require.False(t, strings.HasPrefix(prefix, other) || strings.HasPrefix(other, prefix), "%s and %s", id, whose)
		}
		require.True(t, strings.HasPrefix(prefix, "_INBOX."), "engines may publish there")
		seen[prefix] = id
	}
}

// No pattern in Subscribe ends in "*", because the server matches the ">" of a subscription as one token
// (see Permissions.Subscribe).
func TestNoSubscribeRightEndsInAStar(t *testing.T) {
	for _, id := range everybody() {
		for _, subject := range id.Permissions().Subscribe {
			require.False(t, strings.HasSuffix(subject, "*"), "%s: %s", id, subject)
		}
	}
}

// An engine replies only to the requester's own inbox. For every subject to which an engine subscribes,
// some role may publish.
func TestOwnReply(t *testing.T) {
	asked := map[string]bool{}
	for _, id := range everybody() {
		for _, right := range id.Permissions().Publish {
			subject := strings.ReplaceAll(right, "*", "x")
			if !strings.HasPrefix(subject, "nod.v1.") || id.Account() != roles.Edge || id.Role == roles.Engine {
				continue
			}
			asked[strings.Split(subject, ".")[2]] = true
			require.True(t, roles.OwnReply(subject, id.InboxPrefix()+".a.b"), "%s to %s", subject, id)
			for _, other := range everybody() {
				if may(other, subject) {
					continue
				}
				require.False(t, roles.OwnReply(subject, other.InboxPrefix()+".a.b"), "%s to %s", subject, other)
			}
			for _, reply := range []string{
				"", "_INBOX.a.b", id.InboxPrefix(), id.InboxPrefix() + "x.a", subject, "nod.v1.decision.ada.s.1",
				"$JS.API.STREAM.DELETE.permission_prompts",
			} {
				require.False(t, roles.OwnReply(subject, reply), "%s to %q", subject, reply)
			}
		}
	}
	for _, heard := range (roles.ID{Role: roles.Engine}).Permissions().Subscribe {
		if verb, ok := strings.CutPrefix(heard, "nod.v1."); ok {
			require.True(t, asked[strings.TrimSuffix(verb, ".>")], heard)
		}
	}
	for _, subject := range []string{"", "nod", "nod.v1.request", "nod.v2.request.ada.s.1", "foo.v1.request.ada.s.1", "nod.v1.decision.ada.s.1"} {
		require.False(t, roles.OwnReply(subject, roles.AgentID("ada").InboxPrefix()+".a"), subject)
	}
}

func may(id roles.ID, subject string) bool {
	for _, right := range id.Permissions().Publish {
		if id.Permissions().All || matches(right, subject) {
			return true
		}
	}
	return false
}

func matches(pattern, subject string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i := range p {
		if p[i] == ">" {
			return i < len(s)
		}
		if i >= len(s) || p[i] != "*" && p[i] != s[i] {
			return false
		}
	}
	return len(p) == len(s)
}

func TestConfigText(t *testing.T) {
	require.GreaterOrEqual(t, roles.MaxPayload, schemas.MaxPayloadBytes)

	open := roles.Config{StoreDir: `/d "x"`}.String()
	require.Contains(t, open, `store_dir: "/d \"x\""`)
	require.Contains(t, open, "sync_interval: always")
	require.NotContains(t, open, "accounts")

	slow := roles.Config{StoreDir: "d", SyncInterval: 2 * time.Minute}.String()
	require.Contains(t, slow, `sync_interval: "2m0s"`)

	part := roles.Config{Users: []roles.User{{ID: roles.AgentID("ada"), PublicKey: "UADA"}}}.String()
	require.NotContains(t, part, "jetstream {", "the including file says where streams are kept")
	require.Contains(t, part, "# agent-ada\n      {nkey: UADA, allowed_connection_types: [STANDARD, WEBSOCKET, IN_PROCESS], permissions: {")
}

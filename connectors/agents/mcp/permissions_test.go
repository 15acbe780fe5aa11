package mcp_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/mcp"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

// byReason is an approver whose answer depends on the request's reason.
func byReason(p schemas.Prompt) nodtest.Answer {
	switch p.Request.Reason {
	case "yes":
		return nodtest.Allow()
	case "no":
		return nodtest.Deny("")
	case "no, because":
		return nodtest.Deny("use the cache")
	}
	return nodtest.Answer{}
}

// An agent that requests, lists and shares permissions gets exactly these texts.
func TestPermissions(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			client := nodtest.Start(t, byReason)
			n := watch(client)
			s := mcp.New(n, mcp.Options{Session: session, Host: "devbox"})
			t.Cleanup(s.Stop)
			var c *sdk.ClientSession
			if w.http {
				named := bearer{map[string][]string{mcp.SessionHeader: {session}}, transport()}
				c = reachHTTP(t, web(t, s).URL, w.version, named, nil)
			} else {
				c = reach(t, s, w, nil)
			}
			_, err := client.Session(t.Context(), "helper")
			require.NoError(t, err)
			for _, step := range []struct {
				tool, arguments, want string
				isError               bool
			}{
				{"list_permissions", `{}`, "This session (s1) is not limited to a set of permissions: nod's rules decide about each call.", false},
				{"grant_permission", `{"agentId":"helper","permission":"@network","reason":"r"}`, "You can only grant permissions you already have.", true},
				{"request_permission", `{"permission":"@network","reason":"yes"}`, "Permission granted for network access.", false},
				{"request_permission", `{"permission":"@network","reason":"no"}`, "Permission already granted for network access.", false},
				{"request_permission", `{"permission":"@write:/srv/p","reason":"no"}`, "Permission denied for write access to /srv/p.", false},
				{"request_permission", `{"permission":"@read:/srv/p","reason":"no, because"}`, "Permission denied for read access to /srv/p. Denied by nodtest: use the cache", false},
				{"list_permissions", `{}`, "This session (s1) is not limited to a set of permissions: nod's rules decide about each call.\nGranted: @network until it is revoked", false},
				{"grant_permission", `{"agentId":"helper","permission":"@network","reason":""}`, "Reason is required.", true},
				{"grant_permission", `{"agentId":"nobody","permission":"@network","reason":"r"}`, "Agent not found: nobody", true},
				{"grant_permission", `{"agentId":"helper","permission":"@network","reason":"r"}`, "Permission granted to agent helper.", false},
				{"request_permission", `{"permission":"@network","reason":"no","agentId":"helper"}`, "Permission already granted for network access.", false},

				{"request_permission", `{"permission":"@read:","agentId":"nobody"}`, "Reason is required.", true},
				{"request_permission", `{"reason":"r","agentId":"nobody"}`, "Permission is required.", true},
				{"request_permission", `{"permission":"@read:","reason":"r","agentId":"nobody"}`, "Agent not found: nobody", true},
				{"request_permission", `{"permission":"@read:","reason":"r"}`, "Read permission requires a path.", true},
				{"request_permission", `{"permission":"@read:src","reason":"r"}`, "Path must be absolute.", true},
				{"request_permission", `{"permission":"@network","reason":"r","timeout_minutes":0.5}`, "timeout_minutes must be 1 to 60", true},
			} {
				got, isError := calls(t, c, step.tool, step.arguments)
				assert.Equal(t, step.want, got, step.arguments)
				assert.Equal(t, step.isError, isError, step.arguments)
			}
			result, err := c.CallTool(t.Context(), callOf("list_permissions", `{}`))
			require.NoError(t, err)
			held, err := json.Marshal(result.StructuredContent)
			require.NoError(t, err)
			assert.JSONEq(t, `{"session_id":"s1","managed":false,"permissions":[],"granted":[{"what":"@network"}]}`, string(held))
		})
	}
}

// A request for several permissions is one question for a person. The question shows only the
// permissions that the session lacks.
func TestSeveralPermissionsAreOneQuestion(t *testing.T) {
	t.Parallel()
	shown := make(chan schemas.Prompt, 10)
	client := nodtest.Start(t, func(p schemas.Prompt) nodtest.Answer {
		shown <- p
		return nodtest.Allow()
	})
	c := reach(t, serve(t, watch(client), mcp.Options{}), ways()[0], nil)
	_, err := client.Session(t.Context(), "helper")
	require.NoError(t, err)
	const both = "network access and write access to /srv/p."
	for _, step := range []struct {
		arguments, want string
		missing         []string
	}{
		{`{"permission":"@network","reason":"r"}`, "Permission granted for network access.", []string{"@network"}},
		{`{"permissions":["@network","@write:/srv/p"],"reason":"r"}`, "Permission granted for " + both, []string{"@write:/srv/p"}},
		{`{"permission":"@network","permissions":["@write:/srv/p"],"reason":"r"}`, "Permission already granted for " + both, nil},
		{`{"permission":"@network","permissions":["@network","@write:/srv/p"],"reason":"r"}`, "Permission already granted for " + both, nil},
		{`{"permissions":["@network"],"reason":"r","agent_id":"helper","agentId":"helper"}`, "Permission granted for network access.", []string{"@network"}},
		{`{"permissions":["@network"],"reason":"r","agent_id":"helper"}`, "Permission already granted for network access.", nil},
	} {
		got, isError := calls(t, c, "request_permission", step.arguments)
		require.Equal(t, step.want, got, step.arguments)
		require.False(t, isError)
		if step.missing != nil {
			assert.Equal(t, []schemas.Reach{{Permissions: step.missing}}, (<-shown).Remember, step.arguments)
		}
	}
	assert.Empty(t, shown)
	for arguments, want := range map[string]string{
		`{"permissions":[],"reason":"r"}`:                                                   "Permission is required.",
		`{"permissions":["@network",""],"reason":"r"}`:                                      "Permission must be @read:<path>, @write:<path> or @network.",
		`{"permissions":["@network"],"reason":"r","agent_id":"nobody"}`:                     "Agent not found: nobody",
		`{"permissions":["@network"],"reason":"r","agent_id":"helper","agentId":"another"}`: "agent_id and agentId name different sessions",
	} {
		got, isError := calls(t, c, "request_permission", arguments)
		assert.Equal(t, want, got, arguments)
		assert.True(t, isError)
	}
}

// The request has the timeout that the agent wants, in seconds. Without a wish, it is 0, which means
// nod's default. If the request times out, the tool's result is an error.
func TestAPermissionRequestTimesOutWithAnError(t *testing.T) {
	t.Parallel()
	asked := make(chan schemas.Request, 10)
	n := fake(func(_ context.Context, r schemas.Request) (schemas.Decision, error) {
		asked <- r
		return schemas.Decision{SessionID: r.SessionID, PendingID: r.PendingID, Outcome: schemas.TimedOut, Message: "Permission request timed out after 7 minutes"}, nil
	})
	c := reach(t, serve(t, n, mcp.Options{}), ways()[0], nil)
	for arguments, seconds := range map[string]int{
		`{"permission":"@network","reason":"r"}`:                       0,
		`{"permission":"@network","reason":"r","timeout_minutes":7}`:   420,
		`{"permission":"@network","reason":"r","timeout_minutes":1.5}`: 90,
	} {
		got, isError := calls(t, c, "request_permission", arguments)
		assert.Equal(t, "Permission request timed out after 7 minutes", got)
		assert.True(t, isError)
		assert.Equal(t, seconds, (<-asked).TimeoutSeconds)
	}
}

// grantingNod is a fake nod with one session, which it returns for every id.
type grantingNod struct {
	*fakeNod
	session schemas.Session
}

func (n grantingNod) Session(context.Context, string) (schemas.Session, error) { return n.session, nil }

func TestListPermissionsOfAManagedSession(t *testing.T) {
	t.Parallel()
	n := grantingNod{fake(nil), schemas.Session{
		Permissions: &schemas.SessionPermissions{WorkingDir: "/w", ReadDirs: []string{"/r"}, WriteDirs: []string{"/x"}, Network: true},
		Grants: []schemas.StandingAnswer{
			{Permissions: []string{"@read:/g"}, ExpiresAt: time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)},
			{Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"make"}, Prefix: true, Project: "/w"}}},
		},
	}}
	c := reach(t, serve(t, n, mcp.Options{}), ways()[0], nil)
	got, isError := calls(t, c, "list_permissions", `{}`)
	assert.False(t, isError)
	assert.Equal(t, "This session (s1) holds: @write:/w, @write:/x, @read:/r, @network\n"+
		"Granted: @read:/g until 2031-01-02T03:04:05Z\nGranted: Bash(make:*) in /w until it is revoked", got)
	n.session = schemas.Session{Permissions: &schemas.SessionPermissions{}}
	c = reach(t, serve(t, n, mcp.Options{}), ways()[1], nil)
	got, _ = calls(t, c, "list_permissions", `{}`)
	assert.Equal(t, "This session (s1) holds: nothing", got)
}

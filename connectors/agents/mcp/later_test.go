package mcp_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/mcp"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

var requestID = regexp.MustCompile(`request_id (\S+) for the answer`)

// An agent can ask for a permission without waiting, and get the answer later.
func TestAPermissionIsAskedForWithoutWaiting(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, w way) {
		answers := make(chan nodtest.Answer, 1)
		client := nodtest.Start(t, func(schemas.Prompt) nodtest.Answer { return <-answers })
		n := watch(client)
		s := mcp.New(n, mcp.Options{Session: session})
		t.Cleanup(s.Stop)
		named := bearer{map[string][]string{mcp.SessionHeader: {session}}, transport()}
		c := reach(t, s, ways()[0], nil)
		if w.http {
			c = reachHTTP(t, web(t, s).URL, w.version, named, nil)
		}
		for _, step := range []struct {
			permission, status, want string
			answer                   nodtest.Answer
		}{
			{"@write:/srv/p", "denied", "Permission denied for write access to /srv/p. Denied by nodtest: use the cache", nodtest.Deny("use the cache")},
			{"@network", "allowed", "Permission granted for network access.", nodtest.Allow()},
		} {
			words, isError := calls(t, c, "request_permission", `{"permission":"`+step.permission+`","reason":"r","wait":false}`)
			require.False(t, isError)
			found := requestID.FindStringSubmatch(words)
			require.NotNil(t, found, words)
			assert.Equal(t, found[1], (<-n.asked).PendingID)
			status := `{"request_id":"` + found[1] + `"`
			words, isError = calls(t, c, "permission_status", status+`}`)
			assert.False(t, isError)
			assert.Contains(t, words, "Not decided yet: a person is asked. You do not have the permission.")
			answers <- step.answer
			for range 2 { // permission_status can return the same answer again
				result, err := c.CallTool(t.Context(), callOf("permission_status", status+`,"wait_seconds":60}`))
				require.NoError(t, err)
				assert.Equal(t, step.want, said(t, result))
				state, err := json.Marshal(result.StructuredContent)
				require.NoError(t, err)
				assert.JSONEq(t, status+`,"status":"`+step.status+`"}`, string(state))
			}
		}
		said, isError := calls(t, c, "request_permission", `{"permission":"@network","reason":"r","wait":false}`)
		assert.False(t, isError)
		if found := requestID.FindStringSubmatch(said); found != nil { // on a busy machine, even a decision without a person takes more than a second
			said, _ = calls(t, c, "permission_status", `{"request_id":"`+found[1]+`","wait_seconds":60}`)
		}
		assert.Equal(t, "Permission already granted for network access.", said, "no person is asked")
		for arguments, want := range map[string]string{
			`{"request_id":"nosuch"}`:                  "no request with this id of this session is known here",
			`{"request_id":"x","wait_seconds":61}`:     "wait_seconds must be 0 to 60",
			`{"request_id":"x","wait_seconds":-1}`:     "wait_seconds must be 0 to 60",
			`{"request_id":"x","wait":1}`:              "unknown field",
			`{"request_id":"x","wait_seconds":"long"}`: "read the arguments",
		} {
			said, isError := calls(t, c, "permission_status", arguments)
			assert.True(t, isError, arguments)
			assert.Contains(t, said, want)
		}
	})
}

// A session cannot read the answer to a request of another session. When the server stops, it also
// withdraws the requests of agents that do not wait.
func TestAPolledRequestBelongsToItsSession(t *testing.T) {
	t.Parallel()
	client := nodtest.Start(t, func(schemas.Prompt) nodtest.Answer { return nodtest.Answer{} })
	n := watch(client)
	s := mcp.New(n, mcp.Options{})
	url := web(t, s).URL
	one := reachHTTP(t, url, later, bearer{map[string][]string{mcp.SessionHeader: {"one"}}, transport()}, nil)
	two := reachHTTP(t, url, later, bearer{map[string][]string{mcp.SessionHeader: {"two"}}, transport()}, nil)
	said, _ := calls(t, one, "request_permission", `{"permission":"@network","reason":"r","wait":false}`)
	id := requestID.FindStringSubmatch(said)
	require.NotNil(t, id, said)
	said, isError := calls(t, two, "permission_status", `{"request_id":"`+id[1]+`"}`)
	assert.True(t, isError)
	assert.Contains(t, said, "no request with this id of this session")
	s.Stop()
	assert.Equal(t, id[1], (<-n.withdrawn).PendingID)
}

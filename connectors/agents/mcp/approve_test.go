package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/mcp"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

// byTool is an approver whose answer depends on the tool's name.
func byTool(p schemas.Prompt) nodtest.Answer {
	switch plan, _ := p.Request.Plan(); plan {
	case "good":
		return nodtest.Allow()
	case "bad":
		return nodtest.Deny("use make clean")
	}
	switch p.Request.ToolName {
	case "Yes":
		return nodtest.Allow()
	case "No":
		return nodtest.Deny("use make clean")
	case "Edit it":
		return nodtest.Answer{Kind: schemas.AllowOnce, Input: []byte(`{"command":"ls"}`)}
	case "Move it":
		return nodtest.Answer{Kind: schemas.AllowOnce, Input: []byte(`{"cwd":"/etc"}`)}
	}
	return nodtest.Answer{}
}

func use(tool, input, id string) string {
	return fmt.Sprintf(`{"tool_name":%q,"input":%s,"tool_use_id":%q}`, tool, input, id)
}

// Claude Code gets exactly these results from the tool approve.
func TestApprove(t *testing.T) {
	t.Parallel()
	n := watch(nodtest.Start(t, byTool))
	everyWay(t, func(t *testing.T, w way) {
		c := reach(t, serve(t, n, mcp.Options{Project: "/home/ann/app"}), w, nil)
		for _, row := range []struct{ name, tool, input, want string }{
			{"allowed by a person, with its input byte for byte", "Yes", `{"command":"make <b>\u00e9 & é","n":1.50,"o":{"b":1,"a":[]}}`,
				`{"behavior":"allow","updatedInput":{"command":"make <b>\u00e9 & é","n":1.50,"o":{"b":1,"a":[]}}}`},
			{"its own cwd comes back", "Yes", `{"cwd":"/etc"}`, `{"behavior":"allow","updatedInput":{"cwd":"/etc"}}`},
			{"allowed by a rule", "Read", `{"file_path":"/tmp/x"}`, `{"behavior":"allow","updatedInput":{"file_path":"/tmp/x"}}`},
			{"allowed with other input", "Edit it", `{"command":"rm"}`, `{"behavior":"allow","updatedInput":{"command":"ls"}}`},
			{"an edit that cannot be carried out", "Move it", `{}`, `{"behavior":"deny","message":"Allowed with an edit that cannot be carried out: the directory of a call cannot be changed"}`},
			{"denied", "No", `{}`, `{"behavior":"deny","message":"Denied by nodtest: use make clean"}`},
			{"a number that nod could not keep", "Yes", `{"n":12345678901234567890}`, ""},
			{"a plan, approved", "ExitPlanMode", `{"plan":"good"}`, `{"behavior":"allow","updatedInput":{"plan":"good"},"updatedPermissions":[{"destination":"session","mode":"acceptEdits","type":"setMode"}]}`},
			{"a plan, not approved", "ExitPlanMode", `{"plan":"bad"}`, `{"behavior":"deny","message":"The plan is not approved, keep planning: use make clean"}`},
			{"a plan without text", "ExitPlanMode", `{"plan":7}`, `{"behavior":"deny","message":"ExitPlanMode is a question to a person, which nod cannot show here: ask it in your answer's text instead."}`},
		} {
			got, isError := calls(t, c, "approve", use(row.tool, row.input, ""))
			assert.False(t, isError, row.name)
			if row.want == "" {
				assert.Contains(t, got, `{"behavior":"deny","message":"Not allowed`, row.name)
			} else {
				assert.Equal(t, row.want, got, row.name)
			}
		}
	})
}

// The request that the tool approve sends nod has all these fields.
func TestApproveSendsACompleteRequest(t *testing.T) {
	t.Parallel()
	n := watch(nodtest.Start(t, byTool))
	c := reach(t, serve(t, n, mcp.Options{Project: "/home/ann/app"}), ways()[0], nil)
	got, _ := calls(t, c, "approve", use("Yes", `{"command":"make","cwd":"/etc"}`, "toolu_1"))
	assert.Contains(t, got, `"allow"`)
	r := <-n.asked
	assert.Equal(t, "toolu_1", r.PendingID)
	assert.Equal(t, "toolu_1", r.ToolCallID)
	assert.True(t, r.Rejoin, "it may have been asked before")
	assert.Equal(t, session, r.SessionID)
	assert.Equal(t, "Claude Code", r.AgentName)
	assert.Equal(t, "devbox", r.Host)
	assert.Equal(t, "/home/ann/app", r.Project)
	assert.Equal(t, "app", r.SessionLabel)
	assert.Equal(t, `{"command":"make","cwd, in the input":"/etc"}`, string(r.ActionDetails), "only a host says where a call runs")

	again, _ := calls(t, c, "approve", use("Yes", `{"command":"make","cwd":"/etc"}`, "toolu_1"))
	assert.Equal(t, got, again, "the same call has the same decision")
	other, _ := calls(t, c, "approve", use("Yes", `{"command":"rm"}`, "toolu_1"))
	assert.Contains(t, other, `"deny"`, "an allow is for what was asked")
}

// With InProject, the request names the project's directory as the directory of the call.
func TestWithInProjectACallRunsInTheProject(t *testing.T) {
	t.Parallel()
	n := watch(nodtest.Start(t, byTool))
	c := reach(t, serve(t, n, mcp.Options{Project: "/home/ann/app", InProject: true}), ways()[0], nil)
	got, _ := calls(t, c, "approve", use("Yes", `{"command":"make","cwd":"/etc"}`, ""))
	assert.Equal(t, `{"behavior":"allow","updatedInput":{"command":"make","cwd":"/etc"}}`, got)
	assert.Equal(t, `{"command":"make","cwd, in the input":"/etc","cwd":"/home/ann/app"}`, string((<-n.asked).ActionDetails))
	c = reach(t, serve(t, n, mcp.Options{InProject: true}), ways()[0], nil)
	calls(t, c, "approve", use("Yes", `{"command":"make"}`, ""))
	assert.Equal(t, `{"command":"make"}`, string((<-n.asked).ActionDetails), "no project is known")
}

// The tool approve allows a call only if nod's decision allows exactly this request.
func TestApproveNeverAllowsByMistake(t *testing.T) {
	t.Parallel()
	decided := func(d schemas.Decision, err error) func(context.Context, schemas.Request) (schemas.Decision, error) {
		return func(_ context.Context, r schemas.Request) (schemas.Decision, error) {
			if d.PendingID == "" {
				d.SessionID, d.PendingID = r.SessionID, r.PendingID
			}
			return d, err
		}
	}
	for name, row := range map[string]struct {
		ask       func(context.Context, schemas.Request) (schemas.Decision, error)
		says      string
		withdrawn bool
	}{
		"nod is not running": {decided(schemas.Decision{}, errors.New("nod is not running: start it with nod up")),
			"Not allowed, because nod could not get a decision: nod is not running: start it with nod up", true},
		"no approver is set": {decided(schemas.Decision{}, schemas.Errorf(schemas.CodeUndeliverable, "no approver is set")),
			"No approver could be asked: no approver is set", false},
		"an error beside an allow":     {decided(schemas.Decision{Outcome: schemas.Allowed}, errors.New("odd")), "odd", true},
		"no decision":                  {decided(schemas.Decision{}, nil), "no usable decision", false},
		"another request's":            {decided(schemas.Decision{Outcome: schemas.Allowed, PendingID: "x", SessionID: "y"}, nil), "no usable decision", false},
		"it timed out":                 {decided(schemas.Decision{Outcome: schemas.TimedOut}, nil), "Permission request timed out.", false},
		"it was withdrawn":             {decided(schemas.Decision{Outcome: schemas.Withdrawn}, nil), "withdrawn", false},
		"allowed with a reject option": {decided(schemas.Decision{Outcome: schemas.Allowed, OptionKind: schemas.RejectOnce}, nil), "", false},
		"a panic":                      {func(context.Context, schemas.Request) (schemas.Decision, error) { panic("boom") }, "nod failed on this call and refused it.", true},
		"an edit that is no object":    {decided(schemas.Decision{Outcome: schemas.Allowed, UpdatedInput: []byte(`[]`)}, nil), "cannot be carried out", false},
		"an edit that is broken":       {decided(schemas.Decision{Outcome: schemas.Allowed, UpdatedInput: []byte(`{`)}, nil), "cannot be carried out", false},
	} {
		t.Run(name, func(t *testing.T) {
			n := fake(row.ask)
			c := reach(t, serve(t, n, mcp.Options{}), ways()[1], nil)
			got, isError := calls(t, c, "approve", use("Bash", `{"command":"ls"}`, "t1"))
			assert.False(t, isError)
			assert.Contains(t, got, `{"behavior":"deny","message":"`)
			assert.Contains(t, got, row.says)
			require.Len(t, n.withdrawn, map[bool]int{true: 1}[row.withdrawn], "what may be open is withdrawn")
			got, isError = calls(t, c, "request_permission", `{"permission":"@network","reason":"r"}`)
			assert.NotContains(t, got, "granted")
			assert.True(t, isError || row.says == "", got)
		})
	}
}

func TestMalformedCalls(t *testing.T) {
	t.Parallel()
	n := fake(func(context.Context, schemas.Request) (schemas.Decision, error) {
		t.Error("nod was asked")
		return schemas.Decision{}, nil
	})
	everyWay(t, func(t *testing.T, w way) {
		c := reach(t, serve(t, n, mcp.Options{}), w, nil)
		for _, arguments := range []string{
			`null`, `[]`, `"x"`, `{}`, `{"tool_name":"Bash"}`, `{"input":{}}`, `{"tool_name":7,"input":{}}`,
			`{"tool_name":"Bash","input":null}`, `{"tool_name":"Bash","input":[1]}`, `{"tool_name":"Bash","input":"ls"}`,
			`{"Tool_Name":"Bash","Input":{}}`, `{"tool_name":"Bash","input":{},"tool_use_id":{}}`,
			`{"tool_name":"Bash","input":{"cwd":1,"cwd, in the input":2}}`,
		} {
			got, isError := calls(t, c, "approve", arguments)
			assert.False(t, isError, arguments)
			assert.Contains(t, got, `{"behavior":"deny","message":"nod refused the call: `, arguments)
		}
		for _, row := range [][2]string{
			{"request_permission", `[]`}, {"request_permission", `{"permission":7}`}, {"request_permission", `{"permission":"@network","reason":"r","timeout":3}`},
			{"request_permission", `{"permission":"@network","reason":"r","timeout_minutes":0}`},
			{"request_permission", `{"permission":"@network","reason":"r","timeout_minutes":60.5}`},
			{"grant_permission", `{"agentId":[]}`}, {"list_permissions", `{"session":"other"}`},
		} {
			got, isError := calls(t, c, row[0], row[1])
			assert.True(t, isError, row)
			assert.NotContains(t, got, "\n")
		}
		_, err := c.CallTool(t.Context(), callOf("no_such_tool", `{}`))
		assert.Error(t, err)
	})
}

// A call can run contained only if its directory is known.
func TestApproveOffersTheContainerOfAKnownDirectory(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		inProject bool
		contain   string
		want      string
	}{
		"in the project":         {true, schemas.ContainPossible, schemas.ContainPossible},
		"anywhere":               {false, schemas.ContainPossible, "nod mcp was not told --in-project, so the call's directory is not known and it cannot run contained"},
		"a machine that may not": {true, "this system cannot run it contained", "this system cannot run it contained"},
	} {
		t.Run(name, func(t *testing.T) {
			n := watch(nodtest.Start(t, byTool))
			c := reach(t, serve(t, n, mcp.Options{Project: "/home/ann/app", InProject: row.inProject, Contain: row.contain}), ways()[0], nil)
			calls(t, c, "approve", use("Yes", `{"command":"make"}`, ""))
			assert.Equal(t, row.want, (<-n.asked).Contain)
		})
	}
}

package agents_test

import (
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
	"github.com/stretchr/testify/assert"
)

func TestID(t *testing.T) {
	assert.Equal(t, "toolu_01-A", agents.ID("toolu_01-A"), "a valid id stays as it is")
	for _, odd := range []string{"a.b", "a b", "näh", strings.Repeat("x", 129), "a*", ">", "\x00"} {
		id := agents.ID(odd)
		assert.Regexp(t, `^h-[0-9a-f]{32}$`, id)
		assert.Equal(t, id, agents.ID(odd), "the same host id is the same request")
		assert.NotEqual(t, id, agents.ID(odd+"!"))
	}
}

func TestIDWithoutHostIDIsRandom(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := agents.ID("")
		assert.Regexp(t, `^[a-z0-9]{16}$`, id)
		assert.True(t, schemas.ValidID(id))
		seen[id] = true
	}
	assert.Len(t, seen, 1000)
}

func TestAllows(t *testing.T) {
	r := schemas.Request{SessionID: "s", PendingID: "p", Options: schemas.DefaultOptions()}
	yes := schemas.Decision{
		SessionID: "s", PendingID: "p", Outcome: schemas.Allowed,
		OptionID: "allow_once", OptionKind: schemas.AllowOnce,
	}
	with := func(change func(*schemas.Decision)) schemas.Decision {
		d := yes
		change(&d)
		return d
	}
	for name, c := range map[string]struct {
		d    schemas.Decision
		want bool
	}{
		"a person's choice":                {yes, true},
		"a rule's allow without an option": {with(func(d *schemas.Decision) { d.OptionID, d.OptionKind = "", "" }), true},
		"nothing":                          {schemas.Decision{}, false},
		"no outcome":                       {with(func(d *schemas.Decision) { d.Outcome = "" }), false},
		"unknown outcome":                  {with(func(d *schemas.Decision) { d.Outcome = "granted" }), false},
		"denied":                           {with(func(d *schemas.Decision) { d.Outcome = schemas.Denied }), false},
		"timed out":                        {with(func(d *schemas.Decision) { d.Outcome = schemas.TimedOut }), false},
		"withdrawn":                        {with(func(d *schemas.Decision) { d.Outcome = schemas.Withdrawn }), false},
		"cancelled":                        {with(func(d *schemas.Decision) { d.Outcome = schemas.Cancelled }), false},
		"another request":                  {with(func(d *schemas.Decision) { d.PendingID = "q" }), false},
		"another session":                  {with(func(d *schemas.Decision) { d.SessionID = "t" }), false},
		"a rejecting option":               {with(func(d *schemas.Decision) { d.OptionID = "reject_once" }), false},
		"a rejecting kind":                 {with(func(d *schemas.Decision) { d.OptionKind = schemas.RejectAlways }), false},
		"an unknown kind":                  {with(func(d *schemas.Decision) { d.OptionKind = "maybe" }), false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, agents.Allows(r, c.d)) })
	}
}

func TestDescribeDecision(t *testing.T) {
	tool := schemas.Request{Kind: schemas.KindToolCall}
	network := schemas.Request{Kind: schemas.KindPermission, Permissions: []string{"@network"}}
	write := schemas.Request{Kind: schemas.KindPermission, Permissions: []string{"@write:/p"}}
	ann := schemas.By{Kind: schemas.ByHuman, Name: "Ann"}
	rule := schemas.By{Kind: schemas.ByPolicy, Name: "Bash(rm:*)"}
	for _, c := range []struct {
		want agents.AgentReply
		r    schemas.Request
		d    schemas.Decision
	}{
		{agents.AgentReply{Allowed: true, Text: "Allowed by Ann."}, tool, schemas.Decision{Outcome: schemas.Allowed, By: ann}},
		{agents.AgentReply{Allowed: true, Text: "Allowed by the built-in rules."}, tool, schemas.Decision{Outcome: schemas.Allowed, By: schemas.By{Kind: schemas.ByPolicy, Name: "default"}}},
		{agents.AgentReply{Text: "Denied by Ann: use make clean"}, tool, schemas.Decision{Outcome: schemas.Denied, By: ann, Message: "use make clean"}},
		{agents.AgentReply{Text: "Denied by Ann."}, tool, schemas.Decision{Outcome: schemas.Denied, By: ann}},
		{agents.AgentReply{Text: "Denied by a person."}, tool, schemas.Decision{Outcome: schemas.Denied, By: schemas.By{Kind: schemas.ByHuman}}},
		{agents.AgentReply{Text: "Denied by the rule Bash(rm:*)."}, tool, schemas.Decision{Outcome: schemas.Denied, By: rule}},
		{agents.AgentReply{Text: "Dismissed without an answer by Ann."}, tool, schemas.Decision{Outcome: schemas.Cancelled, By: ann}},
		{agents.AgentReply{Text: "Permission request timed out after 60 seconds."}, tool, schemas.Decision{Outcome: schemas.TimedOut, Message: "Permission request timed out after 60 seconds."}},
		{agents.AgentReply{Text: "Permission request timed out."}, tool, schemas.Decision{Outcome: schemas.TimedOut}},
		{agents.AgentReply{Text: "Permission request was withdrawn."}, tool, schemas.Decision{Outcome: schemas.Withdrawn}},
		{agents.AgentReply{IsError: true, Text: `nod sent no usable decision (outcome ""); treated as denied.`}, tool, schemas.Decision{}},
		{agents.AgentReply{Allowed: true, Text: "Permission granted for network access."}, network, schemas.Decision{Outcome: schemas.Allowed, By: ann}},
		{agents.AgentReply{Text: "Permission denied for write access to /p."}, write, schemas.Decision{Outcome: schemas.Denied, By: ann}},
		{agents.AgentReply{Text: "Permission denied for write access to /p. Denied by Ann: not there"}, write, schemas.Decision{Outcome: schemas.Denied, By: ann, Message: "not there"}},
		{agents.AgentReply{Text: "Permission denied for network access. Denied by the rule Bash(rm:*)."}, network, schemas.Decision{Outcome: schemas.Denied, By: rule}},
		{agents.AgentReply{Text: "Permission denied for network access."}, network, schemas.Decision{Outcome: schemas.Cancelled, By: ann}},
		{agents.AgentReply{IsError: true, Text: "Permission request timed out after 15 minutes"}, network, schemas.Decision{Outcome: schemas.TimedOut, Message: "Permission request timed out after 15 minutes"}},
	} {
		assert.Equal(t, c.want, agents.DescribeDecision(&c.r, &c.d))
	}
}

func TestAnAllowWithEditedInputDeniesTheOriginalCall(t *testing.T) {
	r, d := schemas.Request{Kind: schemas.KindToolCall}, schemas.Decision{Outcome: schemas.Allowed, By: schemas.By{Kind: schemas.ByHuman, Name: "Ann"}}
	assert.Equal(t, agents.AgentReply{Allowed: true, Text: "Allowed by Ann."}, agents.DescribeRefusingEdits(&r, &d))
	d.UpdatedInput = []byte(`{"command":"ls"}`)
	assert.Equal(t, agents.AgentReply{Text: `Allowed by Ann. But only with edited input, so this call is denied. Ask again with: {"command":"ls"}`}, agents.DescribeRefusingEdits(&r, &d))
}

func TestOnlyAllowedOutcomesAreDescribedAsAllowed(t *testing.T) {
	for _, outcome := range []schemas.Outcome{schemas.Denied, schemas.Cancelled, schemas.TimedOut, schemas.Withdrawn, "", "ALLOWED", "new"} {
		for _, kind := range []schemas.Kind{schemas.KindToolCall, schemas.KindPermission, schemas.KindQuestion} {
			heard := agents.DescribeDecision(&schemas.Request{Kind: kind, Permissions: []string{"@network"}}, &schemas.Decision{Outcome: outcome, OptionKind: schemas.AllowOnce})
			assert.False(t, heard.Allowed)
			assert.NotContains(t, heard.Text, "granted")
			assert.NotEmpty(t, heard.Text)
		}
	}
}

func TestDescribeErrorNeverAllows(t *testing.T) {
	assert.Equal(t, agents.AgentReply{IsError: true, Text: "No approver could be asked: no approver is set"},
		agents.DescribeError(schemas.Errorf(schemas.CodeUndeliverable, "no approver is set")))
	assert.Equal(t, agents.AgentReply{IsError: true, Text: "Permission request failed"}, agents.DescribeError(&schemas.Error{}))
}

func TestAccess(t *testing.T) {
	assert.Equal(t, "Permission already granted for read access to /a.", agents.AlreadyGranted([]string{"@read:/a"}))
	assert.Equal(t, "network access, network access to x.org:443, write access to /p:q and read access to /r",
		agents.Access([]string{"@network", "@network:x.org:443", "@write:/p:q", "@read:/r"}))
}

// TestActionOfKnowsEachAgentsToolNames: the tool names of every supported agent have the right action
// type. An unknown name has ActionOther.
func TestActionOfKnowsEachAgentsToolNames(t *testing.T) {
	for name, want := range map[string]schemas.ActionType{
		"Bash": schemas.ActionCommand, "bash": schemas.ActionCommand, "run_shell_command": schemas.ActionCommand,
		"apply_patch": schemas.ActionFileWrite, "create": schemas.ActionFileWrite, "replace": schemas.ActionFileWrite,
		"view": schemas.ActionFileRead, "read_many_files": schemas.ActionFileRead,
		"web_fetch": schemas.ActionNetwork, "google_web_search": schemas.ActionNetwork,
		"mcp__db__drop": schemas.ActionMCPTool, "mcp_db_drop": schemas.ActionMCPTool,
		"BASH": schemas.ActionOther, "": schemas.ActionOther,
	} {
		assert.Equal(t, want, agents.ActionOf(name), name)
	}
}

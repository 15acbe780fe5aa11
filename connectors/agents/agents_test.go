package agents_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
	"github.com/stretchr/testify/assert"
)

func TestID(t *testing.T) {
	assert.Equal(t, "toolu_01-A", agents.ID("toolu_01-A"), "what can be an id stays")
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
		"a person's choice":    {yes, true},
		"a rule's, optionless": {with(func(d *schemas.Decision) { d.OptionID, d.OptionKind = "", "" }), true},
		"nothing":              {schemas.Decision{}, false},
		"no outcome":           {with(func(d *schemas.Decision) { d.Outcome = "" }), false},
		"unknown outcome":      {with(func(d *schemas.Decision) { d.Outcome = "granted" }), false},
		"denied":               {with(func(d *schemas.Decision) { d.Outcome = schemas.Denied }), false},
		"timed out":            {with(func(d *schemas.Decision) { d.Outcome = schemas.TimedOut }), false},
		"withdrawn":            {with(func(d *schemas.Decision) { d.Outcome = schemas.Withdrawn }), false},
		"cancelled":            {with(func(d *schemas.Decision) { d.Outcome = schemas.Cancelled }), false},
		"another request":      {with(func(d *schemas.Decision) { d.PendingID = "q" }), false},
		"another session":      {with(func(d *schemas.Decision) { d.SessionID = "t" }), false},
		"a rejecting option":   {with(func(d *schemas.Decision) { d.OptionID = "reject_once" }), false},
		"a rejecting kind":     {with(func(d *schemas.Decision) { d.OptionKind = schemas.RejectAlways }), false},
		"an unknown kind":      {with(func(d *schemas.Decision) { d.OptionKind = "maybe" }), false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, agents.Allows(r, c.d)) })
	}
}

func TestRefusal(t *testing.T) {
	asked := time.Date(2026, 1, 18, 0, 0, 0, 0, time.UTC)
	r := schemas.Request{CreatedAt: asked}
	human := schemas.By{Kind: schemas.ByHuman, Name: "Ann"}
	for _, c := range []struct {
		r    schemas.Request
		d    schemas.Decision
		want string
	}{
		{r, schemas.Decision{Outcome: schemas.Denied, By: human, Message: "use make clean"}, "Denied by Ann: use make clean"},
		{r, schemas.Decision{Outcome: schemas.Denied, By: human}, "Denied by Ann."},
		{r, schemas.Decision{Outcome: schemas.Denied, By: schemas.By{Kind: schemas.ByHuman}}, "Denied by a person."},
		{r, schemas.Decision{Outcome: schemas.Denied, By: schemas.By{Kind: schemas.ByPolicy, Name: "Bash"}}, "Denied by nod's rule Bash."},
		{r, schemas.Decision{Outcome: schemas.Cancelled, By: human}, "Dismissed without an answer by Ann."},
		{r, schemas.Decision{Outcome: schemas.Withdrawn}, "The permission request was withdrawn."},
		{r, schemas.Decision{Outcome: schemas.TimedOut, DecidedAt: asked.Add(60*time.Second + 80*time.Millisecond)}, "Permission request timed out after 60 seconds."},
		{r, schemas.Decision{Outcome: schemas.TimedOut, DecidedAt: asked.Add(time.Minute), Message: "Permission request timed out after 7 days."}, "Permission request timed out after 7 days."},
		{schemas.Request{CreatedAt: asked, Rejoin: true}, schemas.Decision{Outcome: schemas.TimedOut, DecidedAt: asked.Add(time.Minute)}, "Permission request timed out."},
		{r, schemas.Decision{}, `nod sent no usable decision (outcome ""); treated as denied.`},
	} {
		assert.Equal(t, c.want, agents.Refusal(c.r, c.d))
	}
}

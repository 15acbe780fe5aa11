package people

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/schemas"
)

// A terminal gets the bell and two forms of a notification. They contain neither the payload nor
// control characters of an agent.
func TestRing(t *testing.T) {
	p := schemas.Prompt{Agent: "agent", Risk: schemas.RiskHigh, Request: schemas.Request{
		Title: "secret title", AgentName: "Hi\a\x1b]9;x;y", Project: "/home/ann/app", ActionDetails: []byte(`{"command":"cat secret"}`),
	}}
	text := Ring(p)
	assert.Equal(t, "\a\x1b]9;nod: high risk · Hi⟦U+0007⟧⟦U+001B⟧]9,x,y · app\a"+
		"\x1b]777;notify;nod;nod: high risk · Hi⟦U+0007⟧⟦U+001B⟧]9,x,y · app\a", text)
	assert.NotContains(t, text, "secret")
	assert.Equal(t, 2, strings.Count(Ring(p, p), "nod: 2 requests wait\a"))
	assert.Empty(t, Ring())
}

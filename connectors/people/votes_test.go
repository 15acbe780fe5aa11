package people

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/schemas"
)

// Every channel shows the votes among the parts that it must not fold. The outcome names all
// people who voted.
func TestVotesAreShown(t *testing.T) {
	p := schemas.Prompt{VotesNeeded: 2, Request: schemas.Request{Kind: schemas.KindToolCall, ToolName: "Deploy", ActionDetails: []byte(`{}`)}}
	line := func() string {
		for _, part := range append(Parts(&p, time.Time{}), Brief(&p, time.Time{})...) {
			if part.Label == "Votes" {
				assert.Equal(t, Essential, part.Group)
				return strings.Join(part.Lines, "\n")
			}
		}
		return ""
	}
	assert.Equal(t, "0 of 2; one denial ends it", line())
	p.Votes = []schemas.Vote{{Name: "Ann", OptionID: "allow_once"}}
	assert.Equal(t, "1 of 2: Ann; one denial ends it", line())
	p.Votes[0].Name = "A\u202enn\n2 of 2"
	assert.NotContains(t, line(), "\n")
	assert.NotContains(t, line(), "\u202e")
	p.Votes[0].Name = strings.Repeat("long ", 100)
	assert.LessOrEqual(t, Cells(line()), maxVotesText+len("; one denial ends it"))
	p.Request.Options = []schemas.Option{{OptionID: "a", Name: "Now", Kind: schemas.AllowOnce}, {OptionID: "b", Name: "Tonight", Kind: schemas.AllowOnce}}
	p.Votes = []schemas.Vote{{Name: "Bob", OptionID: "b"}, {Name: "Ann", OptionID: "a"}}
	assert.Equal(t, "1 of 2: Ann for Now; 1 of 2: Bob for Tonight; one denial ends it", line())

	p.Decision = &schemas.Decision{Outcome: schemas.Allowed, OptionKind: schemas.AllowOnce, By: schemas.By{Kind: schemas.ByHuman, Name: "Bob", Connector: "telegram"},
		Votes: []schemas.Vote{{Name: "Ann"}, {Name: "Bob"}}}
	assert.Empty(t, line())
	assert.Contains(t, Outcome(p.Decision, &p), "Allowed once · Ann and Bob")
	p.Decision.Votes = append(p.Decision.Votes, schemas.Vote{Name: "Cleo"})
	assert.Contains(t, AlreadyDecided(p.Decision, time.Time{}), "Ann, Bob and Cleo allowed this")

	p.VotesNeeded, p.Decision = 0, nil
	assert.Empty(t, line())
	p.VotesNeeded = 2
	assert.Contains(t, NewWakeup(&p, "https://x.example").Text, "2 people must allow it")
	stored := schemas.Errorf(schemas.CodeVoted, "your vote is stored (1 of 2: Ann); nothing is allowed before 2 people have voted")
	assert.Equal(t, "Your vote is stored (1 of 2: Ann); nothing is allowed before 2 people have voted.", Refusal(stored, time.Time{}))
}

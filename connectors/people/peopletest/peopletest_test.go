package peopletest_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/example"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/schemas"
)

// channel is the notice board of package example without some of its features.
type channel struct {
	*example.Board
	has peopletest.Features
}

func (c channel) Open(*slog.Logger) people.Carrier {
	if c.has.Edits {
		return example.New(c.Board)
	}
	return followUp{example.New(c.Board)}
}

// followUp is a carrier that cannot edit: it sends an outcome as a new message.
type followUp struct{ people.Carrier }

func (f followUp) Settle(ctx context.Context, _ people.Ref, p schemas.Prompt) error {
	_, err := f.Prompt(ctx, p)
	return err
}

func (c channel) Read(user string) []peopletest.Message {
	var all []peopletest.Message
	for _, n := range c.Notes(user) {
		m := peopletest.Message{ID: n.ID, Text: n.Text}
		for _, choice := range n.Choices {
			if c.has.Buttons {
				m.Choices = append(m.Choices, peopletest.Choice{Kind: choice.Kind, Label: string(choice.Kind), Token: choice.Token})
			}
		}
		all = append(all, m)
	}
	return all
}

func (c channel) Does(user string, act peopletest.Act) bool {
	if act.Reason != "" || act.Press != "" && !c.has.Buttons || act.Press == "" && !c.has.Replies {
		return false
	}
	c.Leave(example.Slip{By: user, Note: act.Message, Says: act.Press + act.Say})
	return true
}

func (c channel) Break(fault peopletest.Fault) {
	c.Fail(map[peopletest.Fault]*people.Error{
		peopletest.Slow: {After: peopletest.SlowFor}, peopletest.Broken: {}, peopletest.Cut: {}, peopletest.Lost: {},
		peopletest.Locked: {Permanent: true}, peopletest.Blocked: {Unreachable: true},
	}[fault])
}

func run(t *testing.T, has, declared peopletest.Features) {
	peopletest.Run(t, declared, func(*testing.T) peopletest.Rig { return channel{example.NewBoard(), has} })
}

// board declares the features of package example's channel.
var board = peopletest.Features{Buttons: true, Replies: true, Edits: true}

// A channel passes with any set of features that it declares truthfully.
func TestChannelsWithFewerFeatures(t *testing.T) {
	for name, features := range map[string]peopletest.Features{
		"no buttons": {Replies: true, Edits: true},
		"no replies": {Buttons: true, Edits: true},
		"no edits":   {Buttons: true, Replies: true},
		"words only": {Replies: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, features, features)
		})
	}
}

// wrong holds wrong declarations of the features of package example's channel: each has one
// feature too few or too many. fails is the name of the suite's test that must fail then, or
// a part of the suite's error.
var wrong = map[string]struct {
	declared peopletest.Features
	fails    string
}{
	"buttons undeclared":     {peopletest.Features{Replies: true, Edits: true}, "without_Buttons"},
	"replies undeclared":     {peopletest.Features{Buttons: true, Edits: true}, "without_Replies"},
	"edits undeclared":       {peopletest.Features{Buttons: true, Replies: true}, "without_Edits"},
	"reasons declared":       {peopletest.Features{Buttons: true, Replies: true, Edits: true, Reasons: true}, "a_denial_carries_its_reason"},
	"scopes declared":        {peopletest.Features{Buttons: true, Replies: true, Edits: true, Scopes: true}, "nothing_lasts_that_was_not_on_the_screen"},
	"agent options declared": {peopletest.Features{Buttons: true, Replies: true, Edits: true, AgentOptions: true}, "an_option_that_the_agent_remembers_takes_two_steps"},
	"no answers declared":    {peopletest.Features{Edits: true}, "takes no answers"},
}

// The suite fails on each wrong declaration. It runs in a child process, because a failing
// subtest would fail this test too.
func TestWrongDeclarationsFail(t *testing.T) {
	const variable = "NOD_WRONG_DECLARATION"
	if name := os.Getenv(variable); name != "" {
		run(t, board, wrong[name].declared)
		return
	}
	for name, c := range wrong {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self := exec.Command(os.Args[0], "-test.run=^TestWrongDeclarationsFail$", "-test.failfast")
			self.Env = append(os.Environ(), variable+"="+name)
			out, err := self.CombinedOutput()
			require.Error(t, err, "the suite passed:\n%s", out)
			require.Contains(t, string(out), c.fails)
		})
	}
}

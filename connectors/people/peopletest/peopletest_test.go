package peopletest_test

import (
	"context"
	"flag"
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

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the tests mostly wait, so many can run at a time
	os.Exit(m.Run())
}

// channel is the notice board of package example without some of its features.
type channel struct {
	*example.Board
	has   peopletest.Features
	hasty bool
}

func (c channel) Open(*slog.Logger) people.Carrier {
	switch {
	case c.hasty:
		return hasty{example.New(c.Board)}
	case c.has.Edits:
		return example.New(c.Board)
	}
	return followUp{example.New(c.Board)}
}

// followUp is a carrier that cannot edit notes. A note has its choices from the start, and the outcome
// comes in a new note.
type followUp struct{ people.Carrier }

func (f followUp) Prompt(ctx context.Context, p schemas.Prompt) (people.Ref, error) {
	return promptAtOnce(ctx, f.Carrier, p)
}

// promptAtOnce pins a note with its choices.
func promptAtOnce(ctx context.Context, c people.Carrier, p schemas.Prompt) (people.Ref, error) {
	ref, err := c.Prompt(ctx, p)
	if err == nil && p.Decision == nil {
		err = c.(people.Reviser).Revise(ctx, ref, p)
	}
	return ref, err
}

// hasty is a carrier that can edit notes. It wrongly shows the choices before the worker has stored
// the id of the note.
type hasty struct{ example.Carrier }

func (h hasty) Prompt(ctx context.Context, p schemas.Prompt) (people.Ref, error) {
	return promptAtOnce(ctx, h.Carrier, p)
}

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
	peopletest.Run(t, declared, func(*testing.T) peopletest.Rig { return channel{Board: example.NewBoard(), has: has} })
}

// board declares the features of package example's channel.
var board = peopletest.Features{Buttons: true, Replies: true, Edits: true}

// A channel passes the suite with any set of features if it declares exactly the features that it has.
func TestChannelsWithFewerFeatures(t *testing.T) {
	t.Parallel()
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

// wrong contains wrong declarations of the features of package example's channel. Each has one feature
// too few or too many. The field fails is the name of the test in the suite that must fail, or a piece of
// its error.
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
	"outgoing declared":      {peopletest.Features{Outgoing: true}, "a_message_tells_of_the_request_without_its_payload"},
	"outgoing with buttons":  {peopletest.Features{Outgoing: true, Buttons: true}, "takes no answers"},
}

// variable is an environment variable that makes a child process run the suite.
const variable = "NOD_WRONG_CHANNEL"

// The suite fails for each wrong declaration. The suite runs in a child process, because a failing
// subtest would make this test fail too.
func TestWrongDeclarationsFail(t *testing.T) {
	t.Parallel()
	if name := os.Getenv(variable); name != "" {
		run(t, board, wrong[name].declared)
		return
	}
	for name, c := range wrong {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suiteFails(t, "TestWrongDeclarationsFail", name, c.fails)
		})
	}
}

// If a channel can edit messages, its Prompt must not show choices.
func TestChoicesBeforeTheHandleFail(t *testing.T) {
	t.Parallel()
	if os.Getenv(variable) != "" {
		peopletest.Run(t, board, func(*testing.T) peopletest.Rig { return channel{Board: example.NewBoard(), has: board, hasty: true} })
		return
	}
	suiteFails(t, "TestChoicesBeforeTheHandleFail", "hasty", "a_new_message_has_no_choices_until_its_handle_is_stored")
}

// suiteFails runs only this test in a child process, and requires that the suite fails there.
func suiteFails(t *testing.T, test, name, want string) {
	self := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.failfast")
	self.Env = append(os.Environ(), variable+"="+name)
	out, err := self.CombinedOutput()
	require.Error(t, err, "the suite passed:\n%s", out)
	require.Contains(t, string(out), want)
}

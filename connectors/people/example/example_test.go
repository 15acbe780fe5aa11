package example_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/example"
	"github.com/nodbus/nod/connectors/people/peopletest"
)

type rig struct{ *example.Board }

func TestTheSuite(t *testing.T) {
	features := peopletest.Features{Buttons: true, Replies: true, Edits: true}
	peopletest.Run(t, features, func(*testing.T) peopletest.Rig { return rig{example.NewBoard()} })
}

func (r rig) Open(*slog.Logger) people.Carrier { return example.New(r.Board) }

func (r rig) Read(user string) []peopletest.Message {
	var all []peopletest.Message
	for _, n := range r.Notes(user) {
		m := peopletest.Message{ID: n.ID, Text: n.Text}
		for _, c := range n.Choices {
			m.Choices = append(m.Choices, peopletest.Choice{Kind: c.Kind, Label: string(c.Kind), Token: c.Token})
		}
		all = append(all, m)
	}
	return all
}

func (r rig) Does(user string, act peopletest.Act) bool {
	if act.Reason != "" {
		return false // a slip has no field for a reason
	}
	r.Leave(example.Slip{By: user, Note: act.Message, Says: act.Press + act.Say})
	return true
}

func (r rig) Break(fault peopletest.Fault) {
	r.Fail(map[peopletest.Fault]*people.Error{
		peopletest.Slow:    {After: peopletest.SlowFor, Err: errors.New("the board is full for a while")},
		peopletest.Broken:  {},
		peopletest.Cut:     {},
		peopletest.Lost:    {},
		peopletest.Locked:  {Permanent: true},
		peopletest.Blocked: {Unreachable: true},
	}[fault])
}

package peopletest

import (
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// Features are the optional abilities of a channel. For a declared feature the suite runs all
// tests that need it. For any other feature it runs a test that fails if the channel has the
// feature nevertheless. A channel must declare Outgoing and no other feature, or Spoken and
// Replies alone, or at least one of Buttons and Replies.
type Features struct {
	Outgoing     bool // messages only tell that a request waits or has ended, without its payload; the channel takes no answers
	Spoken       bool // the channel asks by voice about one request at a time, and repeats a yes before it counts
	Buttons      bool // messages of the channel have buttons
	Replies      bool // a person can reply to a message with yes or no
	Codes        bool // a person can write yes or no with the code that the prompt shows
	Edits        bool // the channel can edit messages; the carrier must be a people.Reviser
	Reasons      bool // a denial can contain the person's reason
	Scopes       bool // an answer can allow later calls by a rule that nod stores
	AgentOptions bool // an answer can choose an option that the agent itself remembers
	Unkept       bool // if the connector is not connected, the channel drops an answer, and the person reads that it failed
}

// feature is the name of a field of Features.
type feature string

const (
	buttons      feature = "Buttons"
	replies      feature = "Replies"
	codes        feature = "Codes"
	edits        feature = "Edits"
	reasons      feature = "Reasons"
	scopes       feature = "Scopes"
	agentOptions feature = "AgentOptions"
	unkept       feature = "Unkept"
	kept         feature = "Kept" // not a field: the opposite of Unkept
)

func (f Features) declared() map[feature]bool {
	return map[feature]bool{
		buttons: f.Buttons, replies: f.Replies, codes: f.Codes, edits: f.Edits, reasons: f.Reasons, scopes: f.Scopes, agentOptions: f.AgentOptions,
		unkept: f.Unkept, kept: !f.Unkept,
	}
}

// absences contains, for each feature, the test that fails if a channel has the feature without declaring
// it. Unkept and Kept need no such test, because every channel has exactly one of the two.
var absences = map[feature]func(*stage){
	buttons:      noButtons,
	replies:      noReplies,
	codes:        noCodes,
	edits:        noEdits,
	reasons:      noReasons,
	scopes:       nothingUnseen, // nothingUnseen fails if a person can give a lasting answer
	agentOptions: nothingUnseen,
}

func runAbsences(t *testing.T, features Features, stage func(*testing.T) *stage) {
	for name, declared := range features.declared() {
		if absences[name] != nil && !declared && !(features.Outgoing && (name == scopes || name == agentOptions)) { // an outgoing channel needs no test for lasting answers: it has neither buttons nor replies
			t.Run("without "+string(name), func(t *testing.T) {
				t.Parallel()
				absences[name](stage(t))
			})
		}
	}
}

const undeclared = "the channel has a feature that its test does not declare"

func noButtons(s *stage) {
	r := call("git status")
	r.Options = append(schemas.DefaultOptions(), lastingOptions...)
	p, _, m := s.shownOf(r)
	s.Empty(m.Choices, undeclared)
	s.False(s.Does(Ann, Act{Message: m.ID, Press: "x"}), undeclared)
	s.pending(p)
}

func noReplies(s *stage) {
	p, _, m := s.shown("make")
	if s.features.Codes { // a channel with codes takes texts, but must ignore a yes without the code
		s.says(Ann, Act{Message: m.ID, Say: "yes"})
	} else {
		s.False(s.Does(Ann, Act{Message: m.ID, Say: "yes"}), undeclared)
	}
	s.pending(p)
}

func noCodes(s *stage) {
	_, _, m := s.shown("make")
	s.Empty(shownCode.FindString(m.Text), undeclared)
}

// noEdits requires that Settle leaves the prompt's message unchanged and sends the outcome in
// another message.
func noEdits(s *stage) {
	_, can := s.carrier.(people.Reviser)
	s.False(can, undeclared)
	p, ref, m := s.shown("make")
	s.settles(ref, s.desk.end(p, schemas.TimedOut, schemas.By{Kind: schemas.ByClock}))
	s.Equal(m, s.looks(Ann, m.ID), undeclared)
	s.NotEqual(m.ID, s.last(Ann).ID, "the outcome is a message of its own")
}

func noReasons(s *stage) {
	p, _, m := s.shown("make")
	s.False(s.Does(Ann, Act{Message: m.ID, Reason: reason}), undeclared)
	if s.features.Replies {
		for _, text := range []string{"no " + reason, "no, " + reason, "no: " + reason} {
			s.says(Ann, Act{Message: m.ID, Say: text})
			s.pending(p)
		}
	}
	for _, c := range m.Choices {
		s.False(strings.Contains(strings.ToLower(c.Label), "why"), "%s: %q", undeclared, c.Label)
	}
}

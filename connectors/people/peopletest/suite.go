package peopletest

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/internal/testlog"
	"github.com/nodbus/nod/schemas"
)

// tests are the tests of the suite. A test runs only if the channel declares all features that the
// test needs.
var tests = []struct {
	name  string
	needs []feature
	run   func(*stage)
}{
	{"a prompt is shown with its options, and the answer is taken", nil, answered},
	{"a denial is taken", nil, denied},
	{"a denial carries its reason", []feature{reasons}, deniedWithReason},
	{"an option that the agent remembers takes two steps", []feature{buttons, agentOptions}, agentRemembers},
	{"nothing lasts that was not on the screen", []feature{buttons}, nothingUnseen},
	{"a double press is harmless", []feature{buttons}, pressedTwice},
	{"the person who pressed is checked, not the chat", []feature{buttons}, stranger},
	{"one approver's request is not another's", []feature{buttons}, foreign},
	{"made-up data changes nothing", []feature{buttons}, forged},
	{"a late answer reads what happened", nil, late},
	{"words that do not answer change nothing", []feature{replies}, words},
	{"a yes or a no counts with its code", []feature{codes}, answeredByCode},
	{"a text that is no answer with its code decides nothing", []feature{codes}, wordsWithCode},
	{"a code is for one request, one person and the calls that were counted", []feature{codes}, foreignCode},
	{"a text that comes again, or late, changes nothing", []feature{codes}, lateCode},
	{"the outcome takes the place of the choices", nil, settled},
	{"settling twice, and after a restart, is no error", nil, settledTwice},
	{"a new message has no choices until its handle is stored", []feature{edits}, inSteps},
	{"choices that a fault held up are added to the same message", []feature{edits}, heldUpChoices},
	{"a question that changes while it is pending keeps its choices", []feature{edits}, revised},
	{"an answer is about the calls that its question counted", nil, counted},
	{"a changed count replaces the one in the message", []feature{edits}, recounted},
	{"a reply is about the calls that its question counted", []feature{replies}, countedInReply},
	{"an answer given while the connector was away arrives", []feature{kept}, connectorAway},
	{"an answer given while nod was away arrives", nil, nodAway},
	{"an answer given while both were away arrives", []feature{kept}, bothAway},
	{"nod and the connector restart while an answer is on its way", []feature{kept}, restartedMeanwhile},
	{"an answer given while the connector was away fails, and the person reads it", []feature{unkept}, connectorAwayUnkept},
	{"the connector restarts while an answer is on its way, and the person reads that it is not confirmed", []feature{unkept}, restartedUnkept},
	{"faults are told apart", nil, faults},
	{"a prompt that may be there already says so", nil, repeatedPrompt},
	{"a prompt that is revised still says that it may be there twice", []feature{edits}, repeatedRevision},
	{"the outcome of a lost message is a message of its own", nil, endedPrompt},
	{"a message that no worker knows is answered, and loses its choices", []feature{buttons, edits}, unknownMessage},
	{"a request that does not fit whole cannot be allowed", nil, tooLong},
	{"hostile text is shown for what it is", nil, hostile},
	{"one person's trouble is not another's", nil, apart},
	{"cancelling ends it promptly", nil, cancelled},
}

// outgoingTests are the tests of the suite for an outgoing channel.
var outgoingTests = []struct {
	name  string
	needs []feature
	run   func(*stage)
}{
	{"a message tells of the request without its payload", nil, told},
	{"the outcome is a message of its own, without its words", nil, toldOutcome},
	{"faults are told apart", nil, faults},
	{"a message that may be there already says so", nil, toldAgain},
	{"hostile text is shown for what it is", nil, toldHostile},
	{"one person's trouble is not another's", nil, toldApart},
	{"cancelling ends it promptly", nil, cancelled},
}

// Run runs the suite on a channel with these features. The tests run in parallel, and each gets a new
// rig. A test fails if an error or a log line contains one of these secrets.
func Run(t *testing.T, features Features, rig func(t *testing.T) Rig, secrets ...string) {
	tests := tests
	switch {
	case features.Spoken:
		require.Equal(t, Features{Spoken: true, Replies: true}, features, "a spoken channel takes spoken answers alone")
		tests = spokenTests
	case features.Outgoing:
		require.Equal(t, Features{Outgoing: true}, features, "an outgoing channel takes no answers")
		tests = outgoingTests
	default:
		require.True(t, features.Buttons || features.Replies, "a channel without Buttons and Replies takes no answers")
	}
	stage := func(t *testing.T) *stage { return newStage(t, features, rig(t), secrets) }
	declared := features.declared()
	for _, test := range tests {
		runs := true
		for _, need := range test.needs {
			runs = runs && declared[need]
		}
		if runs {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				test.run(stage(t))
			})
		}
	}
	if !features.Spoken { // the tests look for choices, which speech does not show
		runAbsences(t, features, stage)
	}
}

// stage is the environment of one test: a channel, a desk, and the carrier between them.
type stage struct {
	*require.Assertions
	Rig
	t        *testing.T
	ctx      context.Context
	features Features
	desk     *desk
	carrier  people.Carrier
	stop     func() // ends the carrier's Run and waits until it has returned
	log      *testlog.Buffer
	secrets  []string
}

func newStage(t *testing.T, features Features, rig Rig, secrets []string) *stage {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	s := &stage{
		Assertions: require.New(t), Rig: rig, t: t, ctx: ctx, features: features,
		desk: newDesk(), stop: func() {}, log: &testlog.Buffer{}, secrets: secrets,
	}
	t.Cleanup(func() { s.stop(); cancel(); s.noSecretIn(s.log.String()) })
	s.start()
	return s
}

// start opens a new carrier and calls its Run. As a worker does, it calls Run again whenever Run
// returns. s.stop ends this loop.
func (s *stage) start() {
	s.carrier = s.Open(slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan struct{})
	carrier := s.carrier
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := carrier.Run(ctx, s.desk); err != nil && ctx.Err() == nil {
				s.log.Write([]byte(err.Error() + "\n"))
			}
		}
	}()
	var once sync.Once
	s.stop = func() { once.Do(func() { cancel(); <-ended }) }
	if listening, ok := s.Rig.(Listening); ok {
		s.waits("a connection", func() bool { return listening.Connected() > 0 })
		stop := s.stop
		s.stop = func() {
			stop()
			s.waits("the end of the connection", func() bool { return listening.Connected() == 0 })
		}
	}
}

func (s *stage) noSecretIn(text string) {
	s.t.Helper()
	for _, secret := range s.secrets {
		s.NotContains(text, secret)
	}
}

func call(command string) schemas.Request {
	details, err := schemas.Encode(map[string]string{"command": command, "cwd": "/workspace"})
	if err != nil {
		panic(err) // an error means that the test itself is broken
	}
	return schemas.Request{
		Kind: schemas.KindToolCall, Title: "Run a command", ToolName: "Bash", ActionType: schemas.ActionCommand,
		ActionDetails: details, Host: "devbox", AgentName: "Claude Code",
	}
}

// shown shows Ann a request to run a command. It returns the prompt, the carrier's Ref, and the
// message.
func (s *stage) shown(command string) (schemas.Prompt, people.Ref, Message) {
	s.t.Helper()
	return s.shownOf(call(command))
}

func (s *stage) shownOf(r schemas.Request) (schemas.Prompt, people.Ref, Message) {
	s.t.Helper()
	p := s.desk.ask(r, Ann)
	return p, s.sends(p), s.last(Ann)
}

// sends shows p with its choices to its recipient, in the same steps as a worker. It returns the Ref
// of the message.
func (s *stage) sends(p schemas.Prompt) people.Ref {
	s.t.Helper()
	ref, err := s.carrier.Prompt(s.ctx, p)
	s.NoError(err)
	if r, can := s.carrier.(people.Reviser); can {
		s.NoError(r.Revise(s.ctx, ref, p))
	}
	return ref
}

// settles calls Settle as a worker does. It calls Settle again as long as the carrier asks it to wait.
// Any other error fails the test.
func (s *stage) settles(ref people.Ref, p schemas.Prompt) {
	s.t.Helper()
	var err error
	s.waits("Settle", func() bool {
		err = s.carrier.Settle(s.ctx, ref, p)
		var e *people.Error
		return !errors.As(err, &e) || e.After == 0
	})
	s.NoError(err)
}

func (s *stage) last(user string) Message {
	s.t.Helper()
	all := s.Read(user)
	s.NotEmpty(all)
	return all[len(all)-1]
}

// looks returns the present state of a message.
func (s *stage) looks(user, id string) Message {
	s.t.Helper()
	for _, m := range s.Read(user) {
		if m.ID == id {
			return m
		}
	}
	s.Fail("the message is gone")
	return Message{}
}

// choice returns the button that chooses an option of this kind.
func (m Message) choice(kind schemas.OptionKind) (Choice, bool) {
	for _, c := range m.Choices {
		if c.Kind == kind {
			return c, true
		}
	}
	return Choice{}, false
}

// says makes a user act, waits for the reply and returns it.
func (s *stage) says(user string, act Act) (reply string) {
	s.t.Helper()
	before := len(s.Read(user))
	s.True(s.Does(user, act), "the channel cannot do %+v, which its features include", act)
	s.waits("a reply", func() bool { return len(s.Read(user)) > before })
	return s.last(user).Text
}

// answers makes Ann allow or deny once. It waits for the reply and returns it.
func (s *stage) answers(m Message, kind schemas.OptionKind) (reply string) {
	s.t.Helper()
	return s.says(Ann, s.act(m, kind))
}

// submits makes Ann allow or deny once, without waiting for the reply.
func (s *stage) submits(m Message, kind schemas.OptionKind) {
	s.t.Helper()
	s.True(s.Does(Ann, s.act(m, kind)))
}

// act returns the action that allows or denies once. If the channel has buttons, the action presses a
// button. Otherwise it replies with yes or no.
func (s *stage) act(m Message, kind schemas.OptionKind) Act {
	s.t.Helper()
	if !s.features.Buttons {
		return Act{Message: m.ID, Say: map[schemas.OptionKind]string{schemas.AllowOnce: "yes", schemas.RejectOnce: "no"}[kind]}
	}
	c, ok := m.choice(kind)
	s.True(ok, "there is no choice to %s among %v", kind, m.Choices)
	return Act{Message: m.ID, Press: c.Token}
}

// waits polls until the function holds returns true.
func (s *stage) waits(what string, holds func() bool) {
	s.t.Helper()
	s.Eventually(holds, 30*time.Second, 2*time.Millisecond, what)
}

// pending requires that a request has no decision.
func (s *stage) pending(p schemas.Prompt) {
	s.t.Helper()
	s.Nil(s.desk.now(p).Decision)
}

// decided waits for the decision of a request and returns it.
func (s *stage) decided(p schemas.Prompt) schemas.Decision {
	s.t.Helper()
	s.waits("a decision", func() bool { return s.desk.now(p).Decision != nil })
	return *s.desk.now(p).Decision
}

// plain returns a text without white space and vertical bars, because each channel breaks lines
// differently.
func plain(text string) string {
	return strings.NewReplacer(" ", "", "\n", "", "│", "", "┆", "").Replace(text)
}

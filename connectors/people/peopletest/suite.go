package peopletest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// Run runs the suite, each test on a rig of its own. No secret may be in an
// error or in the log, whatever happens.
func Run(t *testing.T, rig func(t *testing.T) Rig, secrets ...string) {
	for _, test := range []struct {
		name string
		run  func(*stage)
	}{
		{"a prompt is shown with its options, and the answer is taken", answered},
		{"a denial is taken", denied},
		{"always takes two steps", always},
		{"nothing lasts that was not on the screen", unseen},
		{"a double press is harmless", pressedTwice},
		{"the person who pressed is checked, not the chat", stranger},
		{"one approver's request is not another's", foreign},
		{"what was made up changes nothing", forged},
		{"a late answer reads what happened", late},
		{"words that do not answer change nothing", words},
		{"the outcome takes the place of the choices", settled},
		{"settling twice, and what is gone, is no error", settledTwice},
		{"a question that changes while it is open keeps its choices", revised},
		{"an answer is about the calls that its question counted", counted},
		{"an answer given while the connector was away arrives", connectorAway},
		{"an answer given while nod was away arrives", nodAway},
		{"an answer given while both were away arrives", bothAway},
		{"nod and the connector restart while an answer is on its way", restartedMeanwhile},
		{"faults are told apart", faults},
		{"a prompt that may be there already says so", repeatedPrompt},
		{"how a prompt ended whose message is lost is a message of its own", endedPrompt},
		{"a message that nobody knows of is answered, and loses its choices", unknownMessage},
		{"what does not fit whole cannot be allowed", tooLong},
		{"hostile text is shown for what it is", hostile},
		{"one person's trouble is not another's", apart},
		{"cancelling ends it promptly", cancelled},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(newStage(t, rig(t), secrets)) })
	}
}

// stage is one test: a channel, a nod, and the carrier between them.
type stage struct {
	*require.Assertions
	Rig
	t       *testing.T
	ctx     context.Context
	desk    *desk
	carrier people.Carrier
	stop    func() // ends the carrier's Run
	log     *logs
	secrets []string
}

func newStage(t *testing.T, rig Rig, secrets []string) *stage {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	s := &stage{Assertions: require.New(t), Rig: rig, t: t, ctx: ctx, desk: newDesk(), stop: func() {}, log: &logs{}, secrets: secrets}
	t.Cleanup(func() { s.stop(); cancel(); s.keeps(s.log.String()) })
	s.start()
	return s
}

// start opens a new carrier and runs it, again after every error, as a worker
// does.
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
}

// keeps makes sure that a text gives no secret away.
func (s *stage) keeps(text string) {
	s.t.Helper()
	for _, secret := range s.secrets {
		s.NotContains(text, secret)
	}
}

// call is a request to run a command.
func call(command string) schemas.Request {
	details, err := schemas.Encode(map[string]string{"command": command, "cwd": "/workspace"})
	if err != nil {
		panic(err) // the test's own request
	}
	return schemas.Request{
		Kind: schemas.KindToolCall, Title: "Run a command", ToolName: "Bash", ActionType: schemas.ActionCommand,
		ActionDetails: details, Host: "devbox", AgentName: "Claude Code",
	}
}

// shown asks Ann whether a command may run and returns what she then sees.
func (s *stage) shown(command string) (schemas.Prompt, people.Ref, Message) {
	s.t.Helper()
	return s.shownOf(call(command))
}

func (s *stage) shownOf(r schemas.Request) (schemas.Prompt, people.Ref, Message) {
	s.t.Helper()
	p := s.desk.ask(r, Ann)
	ref, err := s.carrier.Prompt(s.ctx, p)
	s.NoError(err)
	return p, ref, s.last(Ann)
}

// settles has the carrier settle, again where it asks to wait, as a worker does.
func (s *stage) settles(ref people.Ref, p schemas.Prompt) {
	s.t.Helper()
	var err error
	s.waits("that it settles", func() bool {
		err = s.carrier.Settle(s.ctx, ref, p)
		var e *people.Error
		return !errors.As(err, &e) || e.After == 0
	})
	s.NoError(err)
}

// last is what somebody was told last.
func (s *stage) last(user string) Message {
	s.t.Helper()
	all := s.Read(user)
	s.NotEmpty(all)
	return all[len(all)-1]
}

// looks is a message as it looks now.
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

// choice is the one that chooses an option of this kind.
func (m Message) choice(kind schemas.OptionKind) (Choice, bool) {
	for _, c := range m.Choices {
		if c.Kind == kind {
			return c, true
		}
	}
	return Choice{}, false
}

// does has somebody do something, and waits until they have been told what
// came of it.
func (s *stage) does(user string, act Act) string {
	s.t.Helper()
	before := len(s.Read(user))
	if !s.Does(user, act) {
		s.t.Skip("this channel has no such thing")
	}
	s.waits("a word about it", func() bool { return len(s.Read(user)) > before })
	return s.last(user).Text
}

// presses is does for a choice of Ann's message.
func (s *stage) presses(m Message, kind schemas.OptionKind) string {
	s.t.Helper()
	c, ok := m.choice(kind)
	s.True(ok, "there is no choice to %s among %v", kind, m.Choices)
	return s.does(Ann, Act{Message: m.ID, Press: c.Token})
}

// waits until something holds that nothing announces.
func (s *stage) waits(what string, holds func() bool) {
	s.t.Helper()
	s.Eventually(holds, 30*time.Second, 2*time.Millisecond, what)
}

// open makes sure that a request is still undecided.
func (s *stage) open(p schemas.Prompt) {
	s.t.Helper()
	s.Nil(s.desk.now(p).Decision)
}

// decided waits until a request is decided, and returns how.
func (s *stage) decided(p schemas.Prompt) schemas.Decision {
	s.t.Helper()
	s.waits("a decision", func() bool { return s.desk.now(p).Decision != nil })
	return *s.desk.now(p).Decision
}

// logs is a log that may be written to at once.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// plain is a text without white space and bars: how a channel breaks lines is
// its own.
func plain(text string) string {
	return strings.NewReplacer(" ", "", "\n", "", "│", "", "┆", "").Replace(text)
}

package test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// chat is a channel whose messages all workers share. A test blocks a worker's call at
// the moment at which the worker is to die.
type chat struct {
	mu       sync.Mutex
	messages []schemas.Prompt // their current text
	first    []schemas.Prompt // their text when sent
	inCall   map[string]int   // running calls by request
	overlaps int
}

// call counts a call about a request until the returned function is called.
func (c *chat) call(id string) (returns func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inCall == nil {
		c.inCall = map[string]int{}
	}
	if c.inCall[id]++; c.inCall[id] > 1 {
		c.overlaps++
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.inCall[id]--
	}
}

// on is the chat as one worker reaches it; before and after run around each of that
// worker's sends.
func (c *chat) on(before, after func(schemas.Prompt)) people.Carrier {
	return &line{c, before, after, nil}
}

type line struct {
	*chat
	before, after, revise func(schemas.Prompt)
}

func (*line) Run(ctx context.Context, _ people.Desk) error {
	<-ctx.Done()
	return ctx.Err()
}

func (l *line) Prompt(_ context.Context, p schemas.Prompt) (people.Ref, error) {
	defer l.call(p.PendingID)()
	if l.before != nil {
		l.before(p)
	}
	l.mu.Lock()
	l.messages, l.first = append(l.messages, p), append(l.first, p)
	ref := people.Ref(fmt.Sprint(len(l.messages) - 1))
	l.mu.Unlock()
	if l.after != nil {
		l.after(p)
	}
	return ref, nil
}

func (l *line) Settle(_ context.Context, ref people.Ref, p schemas.Prompt) error {
	defer l.call(p.PendingID)()
	return l.put(ref, p)
}

func (l *line) Revise(_ context.Context, ref people.Ref, p schemas.Prompt) error {
	defer l.call(p.PendingID)()
	if l.revise != nil {
		l.revise(p)
	}
	return l.put(ref, p)
}

func (l *line) put(ref people.Ref, p schemas.Prompt) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var i int
	if _, err := fmt.Sscan(string(ref), &i); err != nil {
		return err
	}
	l.messages[i] = p
	return nil
}

// about returns the messages about a request with their current text.
func (c *chat) about(id string) []schemas.Prompt { return c.of(id, &c.messages) }

// sent returns the messages about a request with the text as sent.
func (c *chat) sent(id string) []schemas.Prompt { return c.of(id, &c.first) }

func (c *chat) of(id string, all *[]schemas.Prompt) []schemas.Prompt {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(*all), func(p schemas.Prompt) bool { return p.PendingID != id })
}

// settled reports whether a request has n messages and all of them show its outcome.
func (c *chat) settled(id string, n int) func() bool {
	return func() bool {
		all := c.about(id)
		return len(all) == n && !slices.ContainsFunc(all, func(p schemas.Prompt) bool { return p.Decision == nil })
	}
}

// worker is one worker of the connector tg.
type worker struct {
	stop func()
	kill func() // closes its connection to nod
}

func (e *env) worker(c people.Carrier) *worker {
	e.t.Helper()
	return e.workerOn(e.server.URL(), c)
}

// workerOn starts a worker that connects to url.
func (e *env) workerOn(url string, c people.Carrier) *worker {
	e.t.Helper()
	conn := e.dial(roles.ConnectorID("tg"), url)
	sys := actors.NewSystem(quiet())
	w, err := connector.Work(e.ctx, sys, conn, "tg", c, quiet())
	e.NoError(err)
	var once sync.Once
	over := func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = w.Stop(ctx) // fails for a killed worker, which has no connection
		conn.Close()
		sys.Stop()
	}
	e.wires = append(e.wires, func() { once.Do(over) })
	return &worker{stop: func() { once.Do(over) }, kill: conn.Close}
}

// phones gives Ann a chat on tg beside the terminal. The queue delivers a prompt again
// one second after its worker dies.
func phones(s *setup) {
	s.settings = `{"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]}]}}`
	s.engine.AckWait, s.engines = time.Second, 2
}

// deployTo is a request identical to no other: its id is part of its input.
func deployTo(session, id string) schemas.Request {
	r := deploy(session, id)
	r.ActionDetails = fmt.Appendf(nil, `{"to":%q}`, id)
	return r
}

// queueIdle reports whether the queue is empty and no worker holds a prompt.
func (e *env) queueIdle() bool {
	consumer, err := e.raw.Consumer(e.ctx, "permission_prompts", "tg")
	if err != nil {
		return false
	}
	info := consumer.CachedInfo()
	return info.NumPending == 0 && info.NumAckPending == 0
}

// Two workers share a connector. Each question is sent once and is not marked as a
// repeat, although it changes while it is sent.
func TestTwoWorkersShowEachQuestionOnce(t *testing.T) {
	t.Parallel()
	env, tg := start(t, phones), &chat{}
	ada := env.Agent("ada")
	before := func(p schemas.Prompt) { // stores a newer version while this one is sent
		env.NoError(ada.asker.Detach(env.ctx, p.SessionID, p.PendingID, "the host waits no longer"))
		env.soon("the change is queued", env.outboxIdle)
	}
	env.worker(tg.on(before, nil))
	env.worker(tg.on(before, nil))
	const questions = 50
	var all []*question
	for i := range questions {
		id := fmt.Sprint("q-", i)
		all = append(all, ada.Asks(deployTo(fmt.Sprint("S", i%5), id)))
		env.soon("it is shown and changed", func() bool {
			now := tg.about(id)
			return len(now) > 0 && now[0].Detached && env.queueIdle()
		})
	}
	for i, q := range all {
		env.Ann().Denies(q)
		id := fmt.Sprint("q-", i)
		env.soon("its outcome is shown", tg.settled(id, 1))
		env.False(tg.sent(id)[0].Repeat)
		env.False(tg.about(id)[0].Repeat)
	}
	env.Zero(tg.overlaps)
}

// If the channel takes longer than a claim lasts, the worker renews its claim, and no
// other worker sends the question as well.
func TestAClaimLastsForAsLongAsTheChannelTakes(t *testing.T) {
	t.Parallel()
	env, tg := start(t, phones), &chat{}
	wire, sends := env.wire(), make(chan struct{})
	wire.loseAll("+WPI") // so that the queue gives the prompt to another worker too
	env.workerOn(wire.url, tg.on(func(schemas.Prompt) {
		close(sends)
		env.passed(time.Now().Add(3 * time.Second))
	}, nil))
	q := env.Agent("ada").Asks(deployTo("S", "q"))
	<-sends
	env.worker(tg.on(nil, nil))
	env.soon("it is shown", func() bool { return len(tg.sent("q")) > 0 && env.queueIdle() })
	env.Ann().Denies(q)
	env.soon("its outcome is shown", tg.settled("q", 1))
	env.False(tg.about("q")[0].Repeat)
	env.Zero(tg.overlaps)
}

// If a request changes and ends at the same time, one worker at a time updates its
// message, and the message ends with the outcome.
func TestAnOutcomeWaitsForAChangeThatIsOnItsWay(t *testing.T) {
	t.Parallel()
	env, tg := start(t, phones), &chat{}
	ada := env.Agent("ada")
	open := make(chan *question, 1)
	revise := func(schemas.Prompt) { // decides the request while its change is being shown
		env.Ann().Denies(<-open)
		env.soon("its outcome is queued", env.outboxIdle)
	}
	for range 2 {
		env.worker(&line{chat: tg, revise: revise})
	}
	for i := range 20 {
		id := fmt.Sprint("q-", i)
		q := ada.Asks(deployTo("S", id))
		env.soon("it is shown", func() bool { return len(tg.about(id)) == 1 && env.queueIdle() })
		open <- q
		env.NoError(ada.asker.Detach(env.ctx, "S", id, "the host waits no longer"))
		env.soon("its outcome is shown", func() bool { return tg.settled(id, 1)() && env.queueIdle() })
	}
	env.Zero(tg.overlaps)
}

// deaths are the moments at which a worker dies while it shows a prompt.
var deaths = map[string]func(c *chat, die func(schemas.Prompt)) people.Carrier{
	"before it is sent": func(c *chat, die func(schemas.Prompt)) people.Carrier { return c.on(die, nil) },
	"after it was sent": func(c *chat, die func(schemas.Prompt)) people.Carrier { return c.on(nil, die) },
}

// mortal starts a worker, asks, and returns when the worker has died while it showed its
// first prompt. back lets the dead worker's blocked call return after all.
func (e *env) mortal(c *chat, carrier func(*chat, func(schemas.Prompt)) people.Carrier, ask func() *question) (q *question, back func()) {
	e.t.Helper()
	died, returns := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w := e.worker(carrier(c, func(schemas.Prompt) { once.Do(func() { close(died) }); <-returns }))
	var free sync.Once
	back = func() { free.Do(func() { close(returns) }) }
	e.wires = slices.Insert(e.wires, 0, back)
	q = ask()
	<-died
	w.kill()
	return q, back
}

// A worker dies while it shows a prompt: another worker sends it again, marked as a
// repeat. The outcome is marked too, because no worker can edit the first message.
func TestAPromptWhoseWorkerDiedIsShownAgain(t *testing.T) {
	t.Parallel()
	for when, carrier := range deaths {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			env, tg := start(t, phones), &chat{}
			q, _ := env.mortal(tg, carrier, func() *question { return env.Agent("ada").Asks(deploy("S", "q")) })
			before := len(tg.sent("q"))
			env.worker(tg.on(nil, nil))
			env.soon("it is shown again", func() bool { return len(tg.sent("q")) == before+1 })
			env.True(tg.sent("q")[before].Repeat)
			env.Ann().Denies(q)
			env.soon("its outcome is shown", func() bool { return tg.about("q")[before].Decision != nil })
			env.True(tg.about("q")[before].Repeat)
			env.soon("the queue is empty", env.queueIdle)
			env.Len(tg.sent("q"), before+1)
		})
	}
}

// A worker dies while it shows a prompt, and the request is decided before another
// worker takes over: that worker sends a message with the outcome.
func TestAnOutcomeWhoseQuestionNobodyCanEdit(t *testing.T) {
	t.Parallel()
	for when, carrier := range deaths {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			env, tg := start(t, phones), &chat{}
			q, _ := env.mortal(tg, carrier, func() *question { return env.Agent("ada").Asks(deploy("S", "q")) })
			before := len(tg.sent("q"))
			env.Ann().Denies(q)
			env.worker(tg.on(nil, nil))
			env.soon("a message follows", func() bool { return len(tg.sent("q")) == before+1 })
			told := tg.sent("q")[before]
			env.True(told.Repeat)
			env.Equal(schemas.Denied, told.Decision.Outcome)
			env.soon("the queue is empty", env.queueIdle)
			env.Len(tg.sent("q"), before+1)
		})
	}
}

// A request that is decided before any worker takes its prompt is never shown.
func TestWhatIsDecidedBeforeItIsShownIsNotShown(t *testing.T) {
	t.Parallel()
	env, tg := start(t, phones), &chat{}
	env.worker(tg.on(nil, nil)).stop() // registers the connector
	q := env.Agent("ada").Asks(deploy("S", "q"))
	env.soon("it is queued", env.outboxIdle)
	env.Ann().Denies(q)
	env.soon("its outcome is queued", env.outboxIdle)
	env.worker(tg.on(nil, nil))
	env.soon("the queue is empty", env.queueIdle)
	env.Empty(tg.sent("q"))
}

// A worker that was held up comes back after another has taken over: both messages
// show the outcome, whether it was decided before or after.
func TestAWorkerThatComesBackLate(t *testing.T) {
	t.Parallel()
	for _, decided := range []string{"afterwards", "before"} {
		t.Run("decided "+decided, func(t *testing.T) {
			t.Parallel()
			env, tg := start(t, phones), &chat{}
			sent, returns := make(chan struct{}), make(chan struct{})
			var once sync.Once
			wire := env.wire()
			env.workerOn(wire.url, tg.on(nil, func(schemas.Prompt) {
				once.Do(func() {
					wire.loseAll("+WPI", "nod.v1.shown.") // its claim and its progress are not renewed
					close(sent)
					<-returns
					wire.loseAll()
				})
			}))
			var free sync.Once
			back := func() { free.Do(func() { close(returns) }) }
			env.wires = slices.Insert(env.wires, 0, back)
			q := env.Agent("ada").Asks(deploy("S", "q"))
			<-sent
			env.worker(tg.on(nil, nil))
			env.soon("another worker shows it", func() bool { return len(tg.sent("q")) == 2 })
			if decided == "before" {
				env.Ann().Denies(q)
				env.soon("the second message shows the outcome", func() bool { return tg.about("q")[1].Decision != nil })
			}
			back()
			if decided == "afterwards" {
				env.soon("nod knows the first message", func() bool { return env.knownMessages("q") == 2 })
				env.Ann().Denies(q)
			}
			env.soon("both messages show the outcome", tg.settled("q", 2))
		})
	}
}

// knownMessages counts the messages on Ann's phone that nod knows for a request of S.
func (e *env) knownMessages(id string) int {
	var s schemas.Shown
	if _, err := e.store.Shown.Get(e.ctx, "tg.7.S."+id, &s); err != nil || s.Ref == "" {
		return 0
	}
	return 1 + len(s.Also)
}

// The next worker that starts shows the outcomes that were lost with the queue, also
// the outcome of a prompt whose worker died.
func TestAWorkerSettlesWhatWasLeftBehind(t *testing.T) {
	t.Parallel()
	env, tg := start(t, phones), &chat{}
	ada := env.Agent("ada")
	q, _ := env.mortal(tg, deaths["after it was sent"], func() *question { return ada.Asks(deploy("S", "dead")) })
	env.Ann().Denies(q)
	env.loseQueue()
	env.passed(time.Now().Add(time.Second)) // its claim has expired

	w := env.worker(tg.on(nil, nil))
	env.soon("a message follows", func() bool { return len(tg.sent("dead")) == 2 && tg.about("dead")[1].Decision != nil })
	var lost []*question
	for i := range 20 {
		lost = append(lost, ada.Asks(deployTo("S", fmt.Sprint("q-", i))))
	}
	env.soon("all are shown", func() bool { return len(tg.sent("q-19")) == 1 && env.queueIdle() })
	w.stop()
	for _, q := range lost {
		env.Ann().Denies(q)
	}
	open := ada.Asks(deploy("S", "open"))
	env.loseQueue()
	env.worker(tg.on(nil, nil))
	for i := range lost {
		env.soon("its outcome is shown", tg.settled(fmt.Sprint("q-", i), 1))
	}
	env.Empty(tg.sent("open"), "a pending question is queued again by the engine's sweep, not by the worker")
	env.Ann().Denies(open)
}

// loseQueue empties the queue, as a hard kill of its server may.
func (e *env) loseQueue() {
	e.t.Helper()
	e.soon("all prompts are queued", e.outboxIdle)
	stream, err := e.raw.Stream(e.ctx, "permission_prompts")
	e.NoError(err)
	e.NoError(stream.Purge(e.ctx))
}

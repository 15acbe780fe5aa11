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

// chat is a channel whose messages all workers share. A test holds a call where it
// wants its worker to die.
type chat struct {
	mu       sync.Mutex
	messages []schemas.Prompt // as each looks now
	first    []schemas.Prompt // as each was sent
	inCall   map[string]int   // calls about a request that have not returned
	overlaps int
}

// call notes a call about a request until it returns.
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

// on is the chat as a worker reaches it, with what befalls that worker before and after
// it sends a message.
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

// about are the messages about a request, as they look now.
func (c *chat) about(id string) []schemas.Prompt { return c.of(id, &c.messages) }

// sent are the same as they were sent.
func (c *chat) sent(id string) []schemas.Prompt { return c.of(id, &c.first) }

func (c *chat) of(id string, all *[]schemas.Prompt) []schemas.Prompt {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(*all), func(p schemas.Prompt) bool { return p.PendingID != id })
}

// settled reports whether so many messages about a request show how it ended.
func (c *chat) settled(id string, n int) func() bool {
	return func() bool {
		all := c.about(id)
		return len(all) == n && !slices.ContainsFunc(all, func(p schemas.Prompt) bool { return p.Decision == nil })
	}
}

// worker is one of the connector's.
type worker struct {
	stop func()
	kill func() // nothing of it reaches nod any more
}

func (e *env) worker(c people.Carrier) *worker {
	e.t.Helper()
	return e.workerOn(e.server.URL(), c)
}

// workerOn is worker with a connection to a server of its own.
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
		_ = w.Stop(ctx) // of a killed one there is nothing to give back
		conn.Close()
		sys.Stop()
	}
	e.wires = append(e.wires, func() { once.Do(over) })
	return &worker{stop: func() { once.Do(over) }, kill: conn.Close}
}

// phones are those of Ann, who is at the terminal as well. A worker that dies is
// noticed after a second.
func phones(s *setup) {
	s.settings = `{"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]}]}}`
	s.engine.AckWait, s.engines = time.Second, 2
}

// deployTo is a call like no other.
func deployTo(session, id string) schemas.Request {
	r := deploy(session, id)
	r.ActionDetails = fmt.Appendf(nil, `{"to":%q}`, id)
	return r
}

// queueIdle reports whether no prompt waits, and no worker has one.
func (e *env) queueIdle() bool {
	consumer, err := e.raw.Consumer(e.ctx, "permission_prompts", "tg")
	if err != nil {
		return false
	}
	info := consumer.CachedInfo()
	return info.NumPending == 0 && info.NumAckPending == 0
}

// Two workers share a connector: each question is there once, and does not say that
// it may be there twice, although it changes while it is sent.
func TestTwoWorkersShowEachQuestionOnce(t *testing.T) {
	t.Parallel()
	env, tg := start(t, phones), &chat{}
	ada := env.Agent("ada")
	before := func(p schemas.Prompt) { // a newer version comes while this one is sent
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

// A channel may take longer than a claim lasts: the worker renews it meanwhile, so that
// no other sends the question as well.
func TestAClaimLastsForAsLongAsTheChannelTakes(t *testing.T) {
	t.Parallel()
	env, tg := start(t, phones), &chat{}
	wire, sends := env.wire(), make(chan struct{})
	wire.loseAll("+WPI") // so that the queue gives the prompt to another as well
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

// Of a request that changes and ends at once, one worker at a time shows what is new,
// and the outcome is what stays.
func TestAnOutcomeWaitsForAChangeThatIsOnItsWay(t *testing.T) {
	t.Parallel()
	env, tg := start(t, phones), &chat{}
	ada := env.Agent("ada")
	open := make(chan *question, 1)
	revise := func(schemas.Prompt) { // it ends while its change is on its way
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

// deaths are where a worker dies that shows a prompt.
var deaths = map[string]func(c *chat, die func(schemas.Prompt)) people.Carrier{
	"before it is sent": func(c *chat, die func(schemas.Prompt)) people.Carrier { return c.on(die, nil) },
	"after it was sent": func(c *chat, die func(schemas.Prompt)) people.Carrier { return c.on(nil, die) },
}

// mortal starts a worker that dies when it shows its first prompt, and returns when it
// has. back has the call return after all, which it does not know.
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

// A worker dies while it shows a prompt: another shows it again and says so, also in
// the outcome, since a message may be there that nobody can edit.
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
			env.soon("all of it is over", env.queueIdle)
			env.Len(tg.sent("q"), before+1)
		})
	}
}

// The same, and the request is decided before another worker takes over: a message
// follows that says how it ended.
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
			env.soon("all of it is over", env.queueIdle)
			env.Len(tg.sent("q"), before+1)
		})
	}
}

// What a request that is decided before any worker has seen it shows is nothing.
func TestWhatIsDecidedBeforeItIsShownIsNotShown(t *testing.T) {
	t.Parallel()
	env, tg := start(t, phones), &chat{}
	env.worker(tg.on(nil, nil)).stop() // the connector has been here
	q := env.Agent("ada").Asks(deploy("S", "q"))
	env.soon("it is queued", env.outboxIdle)
	env.Ann().Denies(q)
	env.soon("its outcome is queued", env.outboxIdle)
	env.worker(tg.on(nil, nil))
	env.soon("both were taken", env.queueIdle)
	env.Empty(tg.sent("q"))
}

// A worker that was held up comes back after another has taken over: both messages
// show the outcome, whenever it comes.
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
					wire.loseAll("+WPI", "nod.v1.shown.") // it gives no sign that it works
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
			env.soon("another shows it", func() bool { return len(tg.sent("q")) == 2 })
			if decided == "before" {
				env.Ann().Denies(q)
				env.soon("the second is settled", func() bool { return tg.about("q")[1].Decision != nil })
			}
			back()
			if decided == "afterwards" {
				env.soon("the first is known", func() bool { return env.knownMessages("q") == 2 })
				env.Ann().Denies(q)
			}
			env.soon("both are settled", tg.settled("q", 2))
		})
	}
}

// knownMessages is how many messages nod knows of a request of S for Ann's phone.
func (e *env) knownMessages(id string) int {
	var s schemas.Shown
	if _, err := e.store.Shown.Get(e.ctx, "tg.7.S."+id, &s); err != nil || s.Ref == "" {
		return 0
	}
	return 1 + len(s.Also)
}

// An outcome that got lost with the queue is shown by the next worker that starts, and
// what its worker died of as well.
func TestAWorkerSettlesWhatWasLeftBehind(t *testing.T) {
	t.Parallel()
	env, tg := start(t, phones), &chat{}
	ada := env.Agent("ada")
	q, _ := env.mortal(tg, deaths["after it was sent"], func() *question { return ada.Asks(deploy("S", "dead")) })
	env.Ann().Denies(q)
	env.loseQueue()
	env.passed(time.Now().Add(time.Second)) // its claim is over

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
		env.soon("it is settled", tg.settled(fmt.Sprint("q-", i), 1))
	}
	env.Empty(tg.sent("open"), "which the engine's sweep queues again")
	env.Ann().Denies(open)
}

// loseQueue has the queue lose all prompts, as a hard kill of its server may.
func (e *env) loseQueue() {
	e.t.Helper()
	e.soon("all is queued", e.outboxIdle)
	stream, err := e.raw.Stream(e.ctx, "permission_prompts")
	e.NoError(err)
	e.NoError(stream.Purge(e.ctx))
}

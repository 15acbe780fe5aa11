package people

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
	"github.com/nodbus/nod/test/internal/rig"
)

// chat is a simulated channel whose messages all workers share. A test can block a call of a worker
// in order to kill the worker during the call.
type chat struct {
	mu       sync.Mutex
	messages []schemas.Prompt // the messages with their current content
	first    []schemas.Prompt // the messages with their first content
	live     map[int]bool     // true for each message that has buttons, by the message's index
	inCall   map[string]int   // the number of calls that are running, by request
	overlaps int
}

// The method call counts a call about a request as running until the returned function is called.
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

// The method on returns a carrier through which one worker uses the chat. The carrier calls the
// functions before and after around each send.
func (c *chat) on(before, after func(schemas.Prompt)) people.Carrier {
	return &line{chat: c, before: before, after: after}
}

// line is a carrier through which one worker uses the chat. It calls the functions revise and
// revised around each change of a pending question.
type line struct {
	*chat
	before, after, revise, revised func(schemas.Prompt)
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
	return l.put(ref, p, false)
}

func (l *line) Revise(_ context.Context, ref people.Ref, p schemas.Prompt) error {
	defer l.call(p.PendingID)()
	if l.revise != nil {
		l.revise(p)
	}
	err := l.put(ref, p, true)
	if l.revised != nil {
		l.revised(p)
	}
	return err
}

func (l *line) put(ref people.Ref, p schemas.Prompt, live bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var i int
	if _, err := fmt.Sscan(string(ref), &i); err != nil {
		return err
	}
	l.messages[i] = p
	if l.live == nil {
		l.live = map[int]bool{}
	}
	l.live[i] = live
	return nil
}

// choices returns the number of messages about a request that have buttons.
func (c *chat) choices(id string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, live := range c.live {
		if live && c.messages[i].PendingID == id {
			n++
		}
	}
	return n
}

// The method about returns the messages about a request with their current content.
func (c *chat) about(id string) []schemas.Prompt { return c.of(id, &c.messages) }

// The method sent returns the messages about a request with their first content.
func (c *chat) sent(id string) []schemas.Prompt { return c.of(id, &c.first) }

func (c *chat) of(id string, all *[]schemas.Prompt) []schemas.Prompt {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(*all), func(p schemas.Prompt) bool { return p.PendingID != id })
}

// The method settled returns a condition, which holds if a request has exactly n messages and all of them
// show its outcome.
func (c *chat) settled(id string, n int) func() bool {
	return func() bool {
		all := c.about(id)
		return len(all) == n && !slices.ContainsFunc(all, func(p schemas.Prompt) bool { return p.Decision == nil })
	}
}

type worker struct {
	stop func()
	kill func() // a function that closes the worker's connection to nod
}

func startWorker(e *rig.Env, c people.Carrier) *worker {
	e.T.Helper()
	return workerOn(e, e.Server.URL(), c)
}

func workerOn(e *rig.Env, url string, c people.Carrier) *worker {
	e.T.Helper()
	conn := e.Dial(roles.ConnectorID("tg"), url)
	sys := actors.NewSystem(rig.Quiet())
	w, err := connector.Work(e.Ctx, sys, conn, "tg", c, rig.Quiet())
	e.NoError(err)
	var once sync.Once
	over := func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = w.Stop(ctx) // Stop fails for a killed worker, because the worker has no connection
		conn.Close()
		sys.Stop()
	}
	e.Workers = append(e.Workers, func() { once.Do(over) })
	return &worker{stop: func() { once.Do(over) }, kill: conn.Close}
}

// phones sets Ann's identities to the terminal and a chat on tg. If a worker dies, the queue
// delivers its prompt again after one second.
func phones(s *rig.Setup) {
	s.Settings = `{"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]}]}}`
	s.Engine.AckWait, s.Engines = time.Second, 2
}

// slowTakeover lets a claim last as long as in production. On a slow machine, a worker could renew
// a shorter claim too late, and another worker would then rightly repeat the message.
func slowTakeover(s *rig.Setup) { s.Engine.AckWait = 0 }

// deployTo returns a request with its id in its input, so that no other request is identical.
func deployTo(session, id string) schemas.Request {
	r := rig.Deploy(session, id)
	r.ActionDetails = fmt.Appendf(nil, `{"to":%q}`, id)
	return r
}

// queueIdle reports whether the prompts' queue is empty and no worker is handling a prompt.
func queueIdle(e *rig.Env) bool { return e.QueueIdle("permission_prompts", "tg") }

// Two workers share a connector. Each question is sent once and not marked as a repeat, even if it
// changes during the send.
func TestTwoWorkersShowEachQuestionOnce(t *testing.T) {
	t.Parallel()
	env, tg := rig.Start(t, phones, slowTakeover), &chat{}
	ada := env.Agent("ada")
	before := func(p schemas.Prompt) { // the function before stores a newer version of the request during the send of an older version
		env.NoError(ada.Asker.Detach(env.Ctx, p.SessionID, p.PendingID, "the host waits no longer"))
		env.Soon("the change is queued", env.OutboxIdle)
	}
	startWorker(env, tg.on(before, nil))
	startWorker(env, tg.on(before, nil))
	const questions = 50
	var all []*rig.Question
	for i := range questions {
		id := fmt.Sprint("q-", i)
		all = append(all, ada.Asks(deployTo(fmt.Sprint("S", i%5), id)))
		env.Soon("it is shown and changed", func() bool {
			now := tg.about(id)
			return len(now) > 0 && now[0].Detached && queueIdle(env)
		})
	}
	for i, q := range all {
		env.Ann().Denies(q)
		id := fmt.Sprint("q-", i)
		env.Soon("its outcome is shown", tg.settled(id, 1))
		env.False(tg.sent(id)[0].Repeat)
		env.False(tg.about(id)[0].Repeat)
	}
	env.Zero(tg.overlaps)
}

// A channel takes longer for a send than a claim lasts. The worker renews its claim, so that no
// other worker sends the same question.
func TestAWorkerRenewsItsClaimDuringASlowSend(t *testing.T) {
	t.Parallel()
	env, tg := rig.Start(t, phones), &chat{}
	wire, sends := env.Wire(), make(chan struct{})
	wire.LoseAll("+WPI") // progress messages are lost, so the queue also gives the prompt to the second worker
	workerOn(env, wire.URL, tg.on(func(schemas.Prompt) {
		close(sends)
		env.Passed(time.Now().Add(3 * time.Second))
	}, nil))
	q := env.Agent("ada").Asks(deployTo("S", "q"))
	<-sends
	startWorker(env, tg.on(nil, nil))
	env.Soon("it is shown", func() bool { return len(tg.sent("q")) > 0 && queueIdle(env) })
	env.Ann().Denies(q)
	env.Soon("its outcome is shown", tg.settled("q", 1))
	env.False(tg.about("q")[0].Repeat)
	env.Zero(tg.overlaps)
}

// A request changes and ends at the same time. Only one worker at a time updates the request's message, and
// this message shows the outcome in the end.
func TestAnOutcomeIsShownAfterAChangeInProgress(t *testing.T) {
	t.Parallel()
	env, tg := rig.Start(t, phones), &chat{}
	ada := env.Agent("ada")
	open := make(chan *rig.Question, 1)
	revise := func(p schemas.Prompt) { // the function revise decides the request while a worker shows the request's change
		if !p.Detached {
			return // the first change of a message adds its buttons
		}
		env.Ann().Denies(<-open)
		env.Soon("its outcome is queued", env.OutboxIdle)
	}
	for range 2 {
		startWorker(env, &line{chat: tg, revise: revise})
	}
	for i := range 20 {
		id := fmt.Sprint("q-", i)
		q := ada.Asks(deployTo("S", id))
		env.Soon("it is shown", func() bool { return len(tg.about(id)) == 1 && queueIdle(env) })
		open <- q
		env.NoError(ada.Asker.Detach(env.Ctx, "S", id, "the host waits no longer"))
		env.Soon("its outcome is shown", func() bool { return tg.settled(id, 1)() && queueIdle(env) })
	}
	env.Zero(tg.overlaps)
}

// deaths has the moments at which a worker may die before it stores the handle of its message. The function
// of each moment returns a carrier that calls die at that moment.
var deaths = map[string]func(c *chat, die func(schemas.Prompt)) people.Carrier{
	"before it is sent": func(c *chat, die func(schemas.Prompt)) people.Carrier { return c.on(die, nil) },
	"after it was sent": func(c *chat, die func(schemas.Prompt)) people.Carrier { return c.on(nil, die) },
}

// laterDeaths is like deaths, for moments after the worker has stored the handle of its message, and before
// it has stored that the message has buttons.
var laterDeaths = map[string]func(c *chat, die func(schemas.Prompt)) people.Carrier{
	"before its choices are added": func(c *chat, die func(schemas.Prompt)) people.Carrier { return &line{chat: c, revise: die} },
	"after its choices were added": func(c *chat, die func(schemas.Prompt)) people.Carrier { return &line{chat: c, revised: die} },
}

// The function mortal starts a worker, asks a question and kills the worker while it shows its first prompt.
// The returned function back ends the blocked call of the killed worker.
func mortal(e *rig.Env, c *chat, carrier func(*chat, func(schemas.Prompt)) people.Carrier, ask func() *rig.Question) (q *rig.Question, back func()) {
	e.T.Helper()
	died, returns := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w := startWorker(e, carrier(c, func(schemas.Prompt) { once.Do(func() { close(died) }); <-returns }))
	var free sync.Once
	back = func() { free.Do(func() { close(returns) }) }
	e.Workers = slices.Insert(e.Workers, 0, back)
	q = ask()
	<-died
	w.kill()
	return q, back
}

// If a worker dies before it has stored the handle of its message, another worker sends the prompt
// again. The new message and its outcome are marked as a repeat, because no worker can edit the
// first message. The first message never gets buttons.
func TestAPromptWhoseWorkerDiedIsShownAgain(t *testing.T) {
	t.Parallel()
	for when, carrier := range deaths {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			env, tg := rig.Start(t, phones), &chat{}
			q, _ := mortal(env, tg, carrier, func() *rig.Question { return env.Agent("ada").Asks(rig.Deploy("S", "q")) })
			before := len(tg.sent("q"))
			startWorker(env, tg.on(nil, nil))
			env.Soon("it is shown again", func() bool { return len(tg.sent("q")) == before+1 && tg.choices("q") == 1 })
			env.True(tg.sent("q")[before].Repeat)
			env.Ann().Denies(q)
			env.Soon("its outcome is shown", func() bool { return tg.about("q")[before].Decision != nil })
			env.True(tg.about("q")[before].Repeat)
			env.Soon("the queue is empty", func() bool { return queueIdle(env) })
			env.Len(tg.sent("q"), before+1)
			env.Zero(tg.choices("q"))
		})
	}
}

// If a worker dies after it has stored the handle of its message, another worker continues with
// that message. It adds the buttons, or shows the outcome if the request is decided by then.
func TestAMessageWhoseWorkerDiedIsCompleted(t *testing.T) {
	t.Parallel()
	for when, carrier := range laterDeaths {
		for _, decided := range []bool{false, true} {
			t.Run(fmt.Sprint(when, ", decided: ", decided), func(t *testing.T) {
				t.Parallel()
				env, tg := rig.Start(t, phones), &chat{}
				q, _ := mortal(env, tg, carrier, func() *rig.Question { return env.Agent("ada").Asks(rig.Deploy("S", "q")) })
				env.Equal(1, knownMessages(env, "q"), "the handle is stored")
				if decided {
					env.Ann().Denies(q)
				}
				startWorker(env, tg.on(nil, nil))
				if !decided {
					env.Soon("the question is shown", func() bool { return tg.choices("q") == 1 && queueIdle(env) })
					env.False(tg.about("q")[0].Repeat)
					env.Ann().Denies(q)
				}
				env.Soon("its outcome is shown", tg.settled("q", 1))
				env.Zero(tg.choices("q"))
				env.False(tg.about("q")[0].Repeat)
			})
		}
	}
}

// A worker dies before it has stored the handle of its message, and the request is decided before
// another worker takes over. The other worker sends a message with the outcome.
func TestAnOutcomeIsSentIfItsQuestionsHandleIsLost(t *testing.T) {
	t.Parallel()
	for when, carrier := range deaths {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			env, tg := rig.Start(t, phones), &chat{}
			q, _ := mortal(env, tg, carrier, func() *rig.Question { return env.Agent("ada").Asks(rig.Deploy("S", "q")) })
			before := len(tg.sent("q"))
			env.Ann().Denies(q)
			startWorker(env, tg.on(nil, nil))
			env.Soon("a message follows", func() bool { return len(tg.sent("q")) == before+1 })
			told := tg.sent("q")[before]
			env.True(told.Repeat)
			env.Equal(schemas.Denied, told.Decision.Outcome)
			env.Soon("the queue is empty", func() bool { return queueIdle(env) })
			env.Len(tg.sent("q"), before+1)
			env.Zero(tg.choices("q"), "the lost message never had choices")
		})
	}
}

func TestARequestDecidedBeforeItsPromptIsNotShown(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestADelayedWorkersMessageShowsTheOutcome shows the outcome of one")
	env, tg := rig.Start(t, phones), &chat{}
	startWorker(env, tg.on(nil, nil)).stop() // the worker registers the connector when it starts
	q := env.Agent("ada").Asks(rig.Deploy("S", "q"))
	env.Soon("it is queued", env.OutboxIdle)
	env.Ann().Denies(q)
	env.Soon("its outcome is queued", env.OutboxIdle)
	startWorker(env, tg.on(nil, nil))
	env.Soon("the queue is empty", func() bool { return queueIdle(env) })
	env.Empty(tg.sent("q"))
}

// A worker is delayed after it has sent a prompt, so another worker sends the prompt again. Both
// messages show the outcome, even if the request is decided before the first worker continues.
func TestADelayedWorkersMessageShowsTheOutcome(t *testing.T) {
	t.Parallel()
	for _, decided := range []string{"afterwards", "before"} {
		t.Run("decided "+decided, func(t *testing.T) {
			t.Parallel()
			env, tg := rig.Start(t, phones), &chat{}
			sent, returns := make(chan struct{}), make(chan struct{})
			var once sync.Once
			wire := env.Wire()
			workerOn(env, wire.URL, tg.on(nil, func(schemas.Prompt) {
				once.Do(func() {
					wire.LoseAll("+WPI", "nod.v1.shown.") // this worker can neither renew its claim nor report progress
					close(sent)
					<-returns
					wire.LoseAll()
				})
			}))
			var free sync.Once
			back := func() { free.Do(func() { close(returns) }) }
			env.Workers = slices.Insert(env.Workers, 0, back)
			q := env.Agent("ada").Asks(rig.Deploy("S", "q"))
			<-sent
			startWorker(env, tg.on(nil, nil))
			env.Soon("another worker shows it", func() bool { return len(tg.sent("q")) == 2 })
			if decided == "before" {
				env.Ann().Denies(q)
				env.Soon("the second message shows the outcome", func() bool { return tg.about("q")[1].Decision != nil })
			}
			back()
			if decided == "afterwards" {
				env.Soon("nod knows the first message", func() bool { return knownMessages(env, "q") == 2 })
				env.Ann().Denies(q)
			}
			env.Soon("both messages show the outcome", tg.settled("q", 2))
			env.Zero(tg.choices("q"))
		})
	}
}

// knownMessages counts Ann's messages on tg about requests of session S. It counts a message only if nod has
// stored its handle.
func knownMessages(e *rig.Env, id string) int {
	var s schemas.Shown
	if _, err := e.Store.Shown.Get(e.Ctx, "tg.7.S."+id, &s); err != nil || s.Ref == "" {
		return 0
	}
	return 1 + len(s.Also)
}

// A starting worker shows the outcomes that were lost with the queue, even if the prompt's first
// worker has died.
func TestAStartingWorkerShowsLostOutcomes(t *testing.T) {
	t.Parallel()
	env, tg := rig.Start(t, phones), &chat{}
	ada := env.Agent("ada")
	q, _ := mortal(env, tg, deaths["after it was sent"], func() *rig.Question { return ada.Asks(rig.Deploy("S", "dead")) })
	env.Ann().Denies(q)
	loseQueue(env)
	env.Passed(time.Now().Add(time.Second)) // the dead worker's claim has expired

	w := startWorker(env, tg.on(nil, nil))
	env.Soon("a message follows", func() bool { return len(tg.sent("dead")) == 2 && tg.about("dead")[1].Decision != nil })
	var lost []*rig.Question
	for i := range 20 {
		lost = append(lost, ada.Asks(deployTo("S", fmt.Sprint("q-", i))))
	}
	env.Soon("all are shown", func() bool { return len(tg.sent("q-19")) == 1 && queueIdle(env) })
	w.stop()
	for _, q := range lost {
		env.Ann().Denies(q)
	}
	open := ada.Asks(rig.Deploy("S", "open"))
	loseQueue(env)
	startWorker(env, tg.on(nil, nil))
	for i := range lost {
		env.Soon("its outcome is shown", tg.settled(fmt.Sprint("q-", i), 1))
	}
	env.Empty(tg.sent("open"), "a pending question is queued again by the engine's sweep, not by the worker")
	env.Ann().Denies(open)
}

// loseQueue empties the prompts' queue, as a hard kill of its server may.
func loseQueue(e *rig.Env) {
	e.T.Helper()
	e.Soon("all prompts are queued", e.OutboxIdle)
	stream, err := e.Raw.Stream(e.Ctx, "permission_prompts")
	e.NoError(err)
	e.NoError(stream.Purge(e.Ctx))
}

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/schemas"
)

// stories lists the kinds of stories. The weight of a kind is its share in the random choice.
var stories = []struct {
	kind   string
	weight int
	tell   func(*story, context.Context)
}{
	{"plain", 5, (*story).plain},
	{"rejoin", 3, (*story).rejoin},
	{"twins", 6, (*story).twins},
	{"late", 4, (*story).late},
	{"duel", 3, (*story).duel},
	{"withdrawn", 3, (*story).withdrawn},
	{"standing", 4, (*story).standing},
	{"freeze", 2, (*story).freeze},
	{"deadline", 3, (*story).deadline},
	{"phone", 2, (*story).phone},
	{"rules", 2, (*story).rules},
	{"process", 1, (*story).process},
}

// In the story "plain", an agent makes one call, an approver answers it, and an approver reads the result.
func (s *story) plain(ctx context.Context) {
	a := s.ask(ctx, s.rng.IntN(askers), s.name, s.call(s.name))
	who := s.someone()
	p, err := who.finds(ctx, about(&a.request))
	if err != nil {
		return
	}
	s.thinks(ctx, 500*time.Millisecond)
	_, _ = s.answers(ctx, who, reply(&p, s.option()), s.name)
	s.shows(ctx, s.someone(), a)
}

// In the story "rejoin", the agent asks again with the same id over another connection. Before that, the
// agent may have stopped waiting, or the request may have been decided.
func (s *story) rejoin(ctx context.Context) {
	first := s.rng.IntN(askers)
	a := s.ask(ctx, first, s.name, s.call(s.name))
	if !a.open() {
		return
	}
	if s.rng.IntN(2) == 0 {
		a.drop()
	}
	var answered sync.WaitGroup
	answered.Go(func() {
		who := s.ann()
		if p, err := who.finds(ctx, about(&a.request)); err == nil {
			_, _ = s.answers(ctx, who, reply(&p, "allow_once"), s.name)
		}
	})
	s.thinks(ctx, 700*time.Millisecond)
	again := a.request
	again.Rejoin = true
	s.ask(ctx, (first+1)%askers, s.name, again)
	answered.Wait()
}

// In the story "twins", an agent makes two to five identical calls at nearly the same time. In one variant,
// approvers answer one prompt after another until all calls are decided. In the other variant, each approver
// answers only the first prompt, and the agent withdraws the calls that are still pending.
func (s *story) twins(ctx context.Context) {
	calls := make([]*asked, 2+s.rng.IntN(4))
	apart := time.Duration(s.rng.IntN(3)) * 100 * time.Millisecond
	first, option, both, once := s.rng.IntN(askers), s.option(), s.rng.IntN(2) == 0, s.rng.IntN(2) == 0
	crowd := []*person{s.someone()}
	if both {
		crowd = []*person{s.ann(), s.bob()}
	}
	think := time.Duration(s.rng.IntN(3)) * 150 * time.Millisecond
	var asking, people sync.WaitGroup
	for i := range calls {
		r := s.call(s.name)
		asking.Go(func() {
			pauses(ctx, time.Duration(i)*apart)
			calls[i] = s.ask(ctx, (first+i)%askers, s.name, r)
		})
	}
	done, stop := context.WithCancel(ctx)
	defer stop()
	for _, who := range crowd {
		people.Go(func() {
			if !once {
				s.answersAll(done, ctx, who, option)
			} else if p, err := who.finds(done, s.grouped(s.name)); err == nil {
				pauses(ctx, think)
				_, _ = s.answers(ctx, who, reply(&p, option), s.name)
			}
		})
	}
	asking.Wait()
	if once {
		people.Wait()
		s.takesBack(ctx, calls)
		return
	}
	for _, a := range calls {
		select {
		case <-a.heard:
		case <-ctx.Done():
		}
	}
	stop()
	people.Wait()
}

// answersAll makes an approver answer every prompt of the story's group until the context done ends. The
// answers use the context ctx, so that the end of the context done does not cancel them.
func (s *story) answersAll(done, ctx context.Context, who *person, option string) {
	tried := map[string]uint64{} // for each request, by its key, the revision of the last prompt that the approver answered
	for {
		p, err := who.finds(done, func(p *schemas.Prompt) bool {
			return s.grouped(s.name)(p) && tried[p.Key()] < p.Revision
		})
		if err != nil {
			return
		}
		tried[p.Key()] = p.Revision
		_, err = s.answers(ctx, who, reply(&p, option), s.name)
		if refused := (*schemas.Error)(nil); err != nil && (!errors.As(err, &refused) || refused.Code == schemas.CodeUnavailable) {
			delete(tried, p.Key()) // the outcome is unknown, so the approver answers this prompt again
			pauses(done, time.Second)
		}
	}
}

// In the story "late", an agent detaches from its call, an approver answers the call, and the agent asks
// again.
func (s *story) late(ctx context.Context) {
	a := s.ask(ctx, s.rng.IntN(askers), s.name, s.call(s.name))
	if !a.open() {
		return
	}
	who, option, blind := s.someone(), s.option(), s.rng.IntN(2) == 0
	var answered sync.WaitGroup
	if blind { // the answer and the detach are sent at about the same time
		answered.Go(func() { _, _ = s.answers(ctx, who, a.blind(option), s.name) })
		s.detaches(ctx, s.rng.IntN(askers), a)
		answered.Wait()
	} else {
		s.detaches(ctx, s.rng.IntN(askers), a)
		if p, err := who.finds(ctx, about(&a.request)); err == nil {
			s.thinks(ctx, 300*time.Millisecond)
			_, _ = s.answers(ctx, who, reply(&p, option), s.name)
		}
	}
	again := make([]*asked, 1+s.rng.IntN(3))
	first := s.rng.IntN(askers)
	var asking sync.WaitGroup
	for i := range again {
		r := s.call(s.name)
		asking.Go(func() { again[i] = s.ask(ctx, (first+i)%askers, s.name, r) })
	}
	asking.Wait()
	s.takesBack(ctx, again)
}

// takesBack waits up to 2 s for the decisions about some calls, and then withdraws those of the calls that
// are still pending.
func (s *story) takesBack(ctx context.Context, calls []*asked) {
	moment, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for i, a := range calls {
		select {
		case <-a.heard:
		case <-moment.Done():
			if a.open() && ctx.Err() == nil {
				s.withdraws(ctx, i%askers, a)
			}
		}
	}
}

// In the story "duel", two approvers give opposite answers at nearly the same time. One of these approvers
// then answers again.
func (s *story) duel(ctx context.Context) {
	a := s.ask(ctx, s.rng.IntN(askers), s.name, s.call(s.name))
	if !a.open() {
		return
	}
	gap := time.Duration(s.rng.IntN(20)) * time.Millisecond
	var people sync.WaitGroup
	people.Go(func() { _, _ = s.answers(ctx, s.ann(), a.blind("allow_once"), s.name) })
	people.Go(func() {
		pauses(ctx, gap)
		_, _ = s.answers(ctx, s.bob(), a.blind("reject_once"), s.name)
	})
	people.Wait()
	_, _ = s.answers(ctx, s.ann(), a.blind("allow_once"), s.name)
	s.shows(ctx, s.bob(), a)
}

// In the story "withdrawn", an agent withdraws its call, perhaps while an approver answers the call.
func (s *story) withdrawn(ctx context.Context) {
	a := s.ask(ctx, s.rng.IntN(askers), s.name, s.call(s.name))
	if !a.open() {
		return
	}
	race, conn := s.rng.IntN(2) == 0, s.rng.IntN(askers)
	s.thinks(ctx, 300*time.Millisecond)
	var answered sync.WaitGroup
	if race {
		answered.Go(func() { _, _ = s.answers(ctx, s.ann(), a.blind("allow_once"), s.name) })
	}
	s.withdraws(ctx, conn, a)
	answered.Wait()
	_, _ = s.answers(ctx, s.bob(), a.blind("allow_once"), s.name) // the history gets the stored decision from the reply to this answer
}

// In the story "rules", an agent makes two calls that rules decide at once.
func (s *story) rules(ctx context.Context) {
	for _, tool := range []string{"Lookup", "Forbidden"} {
		r := s.call(s.name + tool)
		r.ToolName, r.Title = tool, "Use "+tool
		s.ask(ctx, s.rng.IntN(askers), tool, r)
	}
}

// In the story "deadline", an approver answers at most 400 ms before or after the deadline.
func (s *story) deadline(ctx context.Context) {
	r := schemas.Request{
		SessionID: s.session, PendingID: bus.NewID(), Kind: schemas.KindPermission, Title: "Permission request", ActionType: schemas.ActionOther,
		ActionDetails: []byte("{}"), Permissions: []string{"@read:/" + s.name}, Reason: "to read it", Host: "elsewhere", TimeoutSeconds: 2 + s.rng.IntN(3),
		Options: schemas.DefaultOptions(),
	}
	about := time.Duration(s.rng.IntN(800)-400) * time.Millisecond
	a := s.ask(ctx, s.rng.IntN(askers), s.name, r)
	if !a.open() {
		return
	}
	pauses(ctx, time.Until(a.receipt.Deadline)+about)
	_, _ = s.answers(ctx, s.someone(), a.blind("allow_once"), s.name)
}

// In the story "phone", an agent makes one call. Only Carl answers it, with the buttons on his phone.
func (s *story) phone(ctx context.Context) {
	a := s.ask(ctx, s.rng.IntN(askers), s.name, s.call(s.name))
	if !a.open() {
		return
	}
	button, option := "Allow once", "allow_once"
	if s.rng.IntN(4) == 0 {
		button, option = "Deny", "reject_once"
	}
	for ctx.Err() == nil {
		press, err := s.onPhone(ctx, a.request.PendingID)
		if err != nil {
			return
		}
		s.begin(event{
			Op: opPress, Story: s.name, Session: s.session, ID: a.request.PendingID, Who: s.carl().name, Group: s.name, Option: option, Waiters: 1,
		})
		press(button)
		select {
		case <-a.heard:
			return
		case <-time.After(5 * time.Second): // Carl presses again, because a worker that ended may have lost the press
		}
	}
}

// In the story "process", the command nod ask sends a request. The command waits for the decision through all
// faults.
func (s *story) process(ctx context.Context) {
	id := bus.NewID()
	r := schemas.Request{SessionID: s.session, PendingID: id}
	s.mu.Lock()
	s.groups[r.Key()] = s.name
	s.mu.Unlock()
	a := &asked{request: r, group: s.name}
	end := s.begin(event{Op: opAsk, Story: s.name, Session: s.session, ID: id, Who: "nod ask", Group: s.name})
	cmd := s.place.command("agents", "agent-local", "ask", "--session", s.session, "--id", id, "--tool", "Frobnicate", "--input", fmt.Sprintf(`{"group":%q}`, s.name), "--json")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if testprogram.Start(cmd) != nil {
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	s.asks.Go(func() {
		select {
		case <-ended: // the test needs no exit code, because the printed decision says the same
		case <-ctx.Done():
			_ = cmd.Process.Kill() // if the command is killed, its event has no Return
			<-ended
			return
		}
		var d schemas.Decision
		err := json.Unmarshal(out.Bytes(), &d)
		end(func(e *event) {
			if e.Decision = &d; err != nil || d.Outcome == "" { // nod ask also prints errors as JSON
				e.Decision, e.Err = nil, fmt.Errorf("nod ask printed %q", &errs)
			}
		})
	})
	who := s.someone()
	if p, err := who.finds(ctx, about(&a.request)); err == nil {
		_, _ = s.answers(ctx, who, reply(&p, s.option()), s.name)
	}
}

func pauses(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

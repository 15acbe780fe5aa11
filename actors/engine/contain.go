package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// containable reports whether nod may change a call so that it runs contained. It reports false if the
// host cannot change calls or has ignored a change. It also reports false in a managed session, where
// the session's permissions limit the call.
func (s *askState) containable() bool {
	return s.request.Contain == schemas.ContainPossible && s.request.NodPath != "" && !s.managed && !s.ignores
}

// planRun returns the contained run of a request's call in the container c, and the tool input that
// starts this run. The run includes the permissions that the call needs. planRun returns nil if c is
// nil, or if the call cannot run contained.
func (s *askState) planRun(c *policy.Containment) (*schemas.ContainedRun, json.RawMessage) {
	if c == nil || !s.containable() || !c.Runs(s.request.ActionDetails) {
		return nil, nil
	}
	input, _, ok := policy.RunInput(s.request.ActionDetails, programOf(&s.request), s.key())
	if !ok {
		return nil, nil
	}
	return &schemas.ContainedRun{
		Container: schemas.Container{Dir: c.Dir, Project: c.Project, ReadOnly: c.ReadOnly, Permissions: tags(c.Needs())},
		Words:     schemas.WordsDigest(c.Words()),
	}, input
}

func programOf(r *schemas.Request) policy.Program {
	return policy.Program(r.Nod())
}

// runContained allows a call to run in the container of a verdict, with the permissions that
// the call needs. If the host cannot change the call's input, a person is asked.
func (s *askState) runContained(out *rulesResult, v policy.Verdict) policy.Verdict {
	run, input := s.planRun(v.Containment)
	if run == nil {
		v.Effect = policy.Ask
		return v
	}
	out.run, out.updated = run, input
	v.Effect = policy.Allow
	return v
}

// runInput returns the tool input that runs the call of one waiter contained, according to the
// Run of its record. pendingID names the waiter.
func runInput(entry *bus.Entry, pendingID string) (json.RawMessage, error) {
	r, err := requestOf(&entry.Record)
	if err != nil {
		return nil, err
	}
	input, words, ok := policy.RunInput(r.ActionDetails, programOf(&r), schemas.Key(r.SessionID, pendingID))
	if !ok || schemas.WordsDigest(words) != entry.Record.Run.Words {
		return nil, schemas.Errorf(schemas.CodeInternal, "%s cannot be changed to run contained: make the call again", entry.Key)
	}
	return input, nil
}

// verdictOn returns the decision about one call of a record. An allow of a contained run contains the
// tool input with the call's own id, because each id starts only one command.
func verdictOn(entry *bus.Entry, pendingID string) (*schemas.Decision, error) {
	d := entry.Record.Verdict(pendingID)
	if d == nil || entry.Record.Run == nil || d.Outcome != schemas.Allowed || pendingID == ownID(entry) {
		return d, nil
	}
	own := *d
	var err error
	own.UpdatedInput, err = runInput(entry, pendingID)
	return &own, err
}

// keepRun keeps the Run of a record only if the decision allows the call to run contained.
// Otherwise it removes the Run.
func keepRun(entry *bus.Entry) {
	rec := &entry.Record
	if rec.Run == nil {
		return
	}
	d := rec.Decision
	input, err := runInput(entry, ownID(entry))
	if err != nil || d.Outcome != schemas.Allowed || !bytes.Equal(input, d.UpdatedInput) {
		rec.Run = nil
		return
	}
	run := *rec.Run
	run.Approved = d.By.Kind == schemas.ByHuman
	rec.Run = &run
}

// edited reports whether a person has edited the input that the record's decision allows.
func edited(rec *schemas.Record, d *schemas.Decision) bool {
	return d.UpdatedInput != nil && rec.Run == nil
}

// containGranted allows a call to run contained if the session has all permissions that the
// call needs.
func (s *askState) containGranted() result {
	v := s.rules.verdict
	if v.Containment == nil || v.Effect != policy.Ask || !s.containable() {
		return result{}
	}
	needs := v.Containment.Needs()
	holds := func(set schemas.SessionPermissions) bool {
		missing, err := policy.Missing(&set, needs, asWritten)
		return err == nil && len(missing) == 0
	}
	if len(needs) == 0 || !holds(s.held.set()) {
		return result{}
	}
	if v = s.runContained(&s.rules, v); v.Effect != policy.Allow {
		return result{}
	}
	return result{outcome: decided, verdict: v, basis: s.held.basisOf(holds)}
}

// run replies whether a contained command may start. A command may start once, soon after its
// decision, exactly as it was decided, and only if the engine would decide it in the same way
// now.
func (e *intake) run(ctx context.Context, c *caller, r *schemas.Run) (schemas.Running, error) {
	entry, err := e.store.Records.Get(ctx, r.Key())
	if noRecord(err) || err == nil && entry.Record.Agent != c.name {
		return schemas.Running{}, notFound(r.Key())
	}
	if err != nil {
		return schemas.Running{}, err
	}
	if entry, err = e.withDecision(ctx, entry); err != nil {
		return schemas.Running{}, err
	}
	if err := e.mayStart(&entry, r); err != nil {
		return schemas.Running{}, err
	}
	if err := e.stillContained(ctx, c, &entry.Record); err != nil {
		return schemas.Running{}, err
	}
	id := bus.NewID()
	entry, changed, err := e.life.change(ctx, entry, func(next *bus.Entry) (write, error) {
		if err := e.mayStart(next, r); err != nil {
			return nil, err
		}
		run := *next.Record.Run
		run.RunID, run.StartedAt = id, e.clock.now()
		next.Record.Run = &run
		return e.life.amend(next), nil
	})
	if err != nil {
		return schemas.Running{}, err
	}
	if !changed {
		return schemas.Running{}, notFound(r.Key())
	}
	return schemas.Running{Type: schemas.TypeRunning, RunID: id, Container: entry.Record.Run.Container}, nil
}

// withDecision returns the entry of a request with its decision. If the request has joined a question
// and its own record lacks the decision, withDecision copies the decision from the question's record
// into it.
func (e *intake) withDecision(ctx context.Context, entry bus.Entry) (bus.Entry, error) {
	if entry.Record.Terminal() || entry.Record.Joined == "" {
		return entry, nil
	}
	question, d, err := e.life.decisionOf(ctx, entry)
	if err != nil || d == nil || question.Key == entry.Key {
		return entry, err
	}
	if err := e.life.followWaiter(ctx, entry.Key, ownID(&question), d); err != nil {
		return entry, err
	}
	return e.store.Records.Get(ctx, entry.Key)
}

// mayStart returns the reason why a decided command must not start, or nil.
func (e *intake) mayStart(entry *bus.Entry, r *schemas.Run) error {
	run, d := entry.Record.Run, ownDecision(entry)
	if err := refuseLater(entry, d); err != nil {
		return err
	}
	switch {
	case run == nil || d == nil || d.Outcome != schemas.Allowed:
		return schemas.Errorf(schemas.CodeForbidden, "%s was not allowed to run contained: make the call again", r.Key())
	case run.Words != r.Words:
		return schemas.Errorf(schemas.CodeForbidden, "%s was allowed for another command: make the call again, unchanged", r.Key())
	case run.Container.Dir != r.Dir:
		return schemas.Errorf(schemas.CodeForbidden, "%s was allowed in another directory, %s: make the call again", r.Key(), run.Container.Dir)
	case run.RunID != "":
		return schemas.Errorf(schemas.CodeConflict, "%s has run already: make the call again", r.Key())
	case !d.DecidedAt.After(e.lastRestore().At):
		return schemas.Errorf(schemas.CodeForbidden, "%s was allowed before nod was restored from a backup, and may have run: make the call again", r.Key())
	case e.clock.now().Sub(d.DecidedAt) > schemas.MaxRunAge:
		return schemas.Errorf(schemas.CodeForbidden, "%s was allowed too long ago: make the call again", r.Key())
	}
	return nil
}

// stillContained checks a decided request again by the present rules, freezes and permissions. It
// returns an error if the request would not run contained as decided.
func (e *intake) stillContained(ctx context.Context, c *caller, rec *schemas.Record) error {
	r, err := requestOf(rec)
	if err != nil {
		return err
	}
	if err := e.readSettings(ctx); err != nil {
		return err
	}
	s := &askState{agentRequest: agentRequest{agent: rec.Agent, body: rec.Request, request: r}, settings: e.settings.now()}
	session, err := e.holdings.requireSession(ctx, rec.Agent, r.SessionID, r.User)
	if err != nil {
		return err
	}
	s.setSession(&session)
	var leave func()
	s.freezes, leave = e.freezes.enter()
	c.afterReply(leave)
	if err := e.check(ctx, s); err != nil {
		return err
	}
	now, allowed := s.rules.run, s.verdict.Effect == policy.Allow
	if rec.Run.Approved && s.verdict.Effect == policy.Ask {
		now, _ = s.planRun(s.rules.verdict.Containment)
		if allowed, err = e.stillApproved(ctx, rec.Decision); err != nil {
			return err
		}
		conditions := e.conditions(s)
		allowed = allowed && (!conditions.forTeams || conditions.enough(rec.Decision.Votes))
	}
	if !allowed || !sameRun(now, rec.Run) {
		return schemas.Errorf(schemas.CodeForbidden, "%s would not run contained any more (%s): make the call again", r.Key(), s.verdict.Rule)
	}
	return nil
}

// stillApproved reports whether a person's approval of a call is still in force. An approval that came
// with a standing answer ends with that answer.
func (e *intake) stillApproved(ctx context.Context, d *schemas.Decision) (bool, error) {
	if !d.Lasts() {
		return true, nil
	}
	g, err := e.holdings.readEntry(ctx, standingKey(ownerOf(d.Grant), d.Grant.GrantID))
	return err == nil && g != nil && !limitedLater(&g.StandingAnswer) && g.Live(e.clock.now()), err
}

// sameRun reports whether two plans run the same words in the same container.
func sameRun(a, b *schemas.ContainedRun) bool {
	return a != nil && b != nil && a.Words == b.Words && a.Container.Equal(b.Container)
}

// approvedAs reports whether an approval of a call allows the call as it would run now. The parameter
// run is nil if the call cannot run contained. An approval without a container also allows a
// contained run, because a container only takes rights away.
func approvedAs(call *schemas.ExactCall, run *schemas.ContainedRun) bool {
	if !call.Contained {
		return true
	}
	return run != nil && call.Container != nil && call.Container.Equal(run.Container)
}

// ran records the end of a contained command. A second report changes nothing.
func (e *intake) ran(ctx context.Context, c *caller, r *schemas.Ran) (schemas.OK, error) {
	entry, err := e.store.Records.Get(ctx, r.Key())
	if noRecord(err) || err == nil && entry.Record.Agent != c.name {
		return schemas.OK{}, notFound(r.Key())
	}
	if err != nil {
		return schemas.OK{}, err
	}
	_, _, err = e.life.change(ctx, entry, func(next *bus.Entry) (write, error) {
		run := next.Record.Run
		if run == nil || run.RunID == "" || run.RunID != r.RunID {
			return nil, notFound(r.Key())
		}
		if run.Report != nil {
			return nil, nil
		}
		ended, report := *run, r.Report
		report.EndedAt = e.clock.now()
		ended.Report = &report
		next.Record.Run = &ended
		return e.life.amend(next), nil
	})
	return schemas.OK{Type: schemas.TypeOK}, err
}

// recordUncontained records that a host ran a call without its container, although nod had allowed
// the call only in the container. From then on the engine lets no call of the session run contained,
// and asks a person instead. recordUncontained returns the ids of the recorded calls.
func (e *withdrawals) recordUncontained(ctx context.Context, agent string, p *schemas.HostResolved, same string) (ids []string, err error) {
	decided, err := e.store.Records.ChangedSince(ctx, p.SessionID, e.clock.now().Add(-schemas.MaxRunAge))
	if err != nil {
		return nil, err
	}
	for _, entry := range decided {
		run, d := entry.Record.Run, entry.Record.Decision
		if run == nil || run.RunID != "" || d == nil || d.Outcome != schemas.Allowed {
			continue
		}
		is, err := isSameCall(&entry.Record, agent, p, same)
		if err != nil {
			return nil, err
		}
		if !is {
			continue
		}
		_, err = e.life.addAftermath(ctx, entry, schemas.Aftermath{PendingID: d.PendingID, Kind: schemas.AftermathUncontained, Reason: "the host ran the agent's words", At: e.clock.now()})
		if err != nil {
			return nil, err
		}
		ids = append(ids, d.PendingID)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	_, err = e.holdings.storeSession(ctx, p.SessionID, func(s *schemas.Session) (bus.Edit, error) {
		if s.Uncontained {
			return bus.Edit{}, nil
		}
		s.Uncontained = true
		return bus.Edit{Store: true}, nil
	})
	return ids, err
}

// logRan logs the end of a contained command, without the names of changed files.
func (e *effects) logRan(ctx context.Context, entry bus.Entry, prompt schemas.Prompt) error {
	run := entry.Record.Run
	if run == nil || run.Report == nil {
		return nil
	}
	report := *run.Report
	report.Changed = nil
	_, err := e.appendOnce(ctx, entry.Key+".ran."+run.RunID, schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: report.EndedAt, Kind: schemas.LogRan, SessionID: prompt.SessionID, PendingID: prompt.PendingID,
		Actor: entry.Record.Agent, ToolName: prompt.Request.ToolName, Digest: entry.Record.Digest, Run: &report,
	}, report.EndedAt)
	return err
}

// contain returns the verdict on a call that the policy lets run contained. If the host cannot run
// the call contained, a call that the policy would allow uncontained is allowed, and a person is
// asked about any other call.
func (s *askState) contain(out *rulesResult, v policy.Verdict) policy.Verdict {
	harmless := v.Effect == policy.Allow
	if s.containable() {
		if contained := s.runContained(out, v); contained.Effect == policy.Allow {
			return contained
		}
	}
	if harmless {
		return v
	}
	why := "its host cannot run it contained"
	switch {
	case s.request.Contain != "" && s.request.Contain != schemas.ContainPossible:
		why = s.request.Contain
	case s.ignores:
		why = "its host ran an earlier call without its container"
	case s.request.Contain != "" && s.request.NodPath == "":
		why = "its hook did not say where nod is, so it cannot run contained: update nod on that machine"
	}
	v.Effect, v.Containment, v.Reasons = policy.Ask, nil, append(slices.Clip(v.Reasons), why)
	return v
}

package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// stages are the checks of a request, in their order. The first one that decides ends
// the checks. A request that none decides is asked of a person.
//
// By the memory of this engine, without reading the store:
//
//  1. frozen: a freeze of everything, of the agent or of the session denies.
//  2. rules: the policy denies, allows or asks. Its denial is final; so is its allow,
//     unless the session is managed.
//
// By the permissions and standing answers of the session and its agent. They may be a
// moment old, so an allow is confirmed at the store before it counts:
//
//  3. permissions: a managed session's permissions allow the calls that they cover and
//     leave the others to a person. A request for permissions that the session holds
//     already is allowed.
//  4. grants: rules that approvers have allowed beyond one call, and permissions that
//     the session holds, allow a call for which the policy asks.
//
// By a person's earlier answer about the same call, read afresh:
//
//  5. denial: a remembered denial denies the same call again.
//  6. approval: an approval that came after its agent had stopped waiting allows the
//     same call, and is used up.
//
// A person is asked. A stage refuses the request by an error, or adds its part to the
// prompt:
//
//  7. admission: a session with too many pending requests gets no more.
//  8. foreground: a background session asks in the place of its agent's session that
//     was active last. Without one the request is refused.
//  9. routing: the approvers who may decide, and their channels. If none of them can be
//     reached, the request is refused.
//  10. reaches: the rules and permissions that an answer may allow beyond this call.
//  11. deadline: the time limit, by the session's own, or by whether an approver is there.
//  12. turn: when phones and chats are told: at once, after the approver who is there has
//     had time, or after earlier questions of the session.
//  13. joining: the request is stored, as a waiter of an identical pending call's
//     question or as a question of its own.
var stages = []stage{
	{"frozen", fromMemory, (*Engine).checkFrozen},
	{"rules", fromMemory, (*Engine).checkRules},
	{"permissions", byEntitlements, (*Engine).checkPermissions},
	{"grants", byEntitlements, (*Engine).checkGrants},
	{"denial", bySameCall, (*Engine).checkDenial},
	{"approval", bySameCall, (*Engine).checkApproval},
	{"admission", asking, (*Engine).admit},
	{"foreground", asking, (*Engine).chooseForeground},
	{"routing", asking, (*Engine).route},
	{"reaches", asking, (*Engine).offerReaches},
	{"deadline", asking, (*Engine).setDeadline},
	{"turn", asking, (*Engine).takeTurn},
	{"joining", asking, (*Engine).storePending},
}

// stage is one step of a request's way through the engine.
type stage struct {
	name  string
	phase phase
	run   func(*Engine, context.Context, *askState) (result, error)
}

// phase groups the stages by the data that they need.
type phase int

const (
	fromMemory phase = iota
	byEntitlements
	bySameCall
	asking
)

// outcome is how a stage ends.
type outcome int

const (
	goOn    outcome = iota // the next stage continues
	decided                // the verdict of the result is the decision
	ask                    // a person is asked; no later check may decide
)

// result is the result of a stage.
type result struct {
	outcome outcome
	verdict policy.Verdict // replaces the one of the stages before; zero leaves that
	basis   basis          // of an allow by entitlements: the entries to confirm
}

// decide is the result of a stage that decides.
func decide(v policy.Verdict) result { return result{outcome: decided, verdict: v} }

// askState is a request on its way through the stages. A stage reads the parts that
// earlier stages have added, and writes only its own.
type askState struct {
	agentRequest
	settings settingsSnapshot // in force when the request came
	freezes  *freezeSnapshot  // in force when the request came
	managed  bool             // the session has permissions of its own, as far as this engine knows
	verdict  policy.Verdict   // of the stages so far

	frozen      *schemas.Freeze   // by frozen: the freeze that denies the request
	rules       rulesResult       // by rules
	held        entitlements      // read before the stage permissions
	attendance  attendance        // read before the stage permissions
	permissions permissionsResult // by permissions
	callAnswer  *standingEntry    // read before the stage denial; nil if there is none
	plan        promptPlan        // by the stages that ask
}

// rulesResult is the result of the policy.
type rulesResult struct {
	verdict policy.Verdict
	call    policy.Call     // the request as the policy sees it
	policy  *policy.Policy  // the rules that gave the verdict; nil if the ones in force are not known
	updated json.RawMessage // the input to run instead of the agent's; nil leaves that
}

// attendance is the activity in a session at the time of a request.
type attendance struct {
	lock *schemas.Lock // the input lock; nil if no client holds it
	open int           // the pending questions of the session
}

// promptPlan are the parts of a pending record that the asking stages add.
type promptPlan struct {
	at         time.Time // now, by the broker's clock
	revision   uint64    // of the deletion marker that the record replaces; 0 is none
	foreground foreground
	routes     []schemas.Route
	reaches    []schemas.Reach
	limit      timeLimit
	next       schemas.Event // the event that the timer is armed for
	entry      bus.Entry     // the record as stored
}

// timeLimit is how long a request may wait, and the tier that says so.
type timeLimit struct {
	tier    schemas.Tier
	timeout time.Duration
}

// foreground is the session in whose place a background session asks; zero is none.
type foreground struct {
	session string
	lock    *schemas.Lock // its input lock; nil if no client holds it
}

// runStages runs the stages of one phase, up to the first one that does not go on.
func (e *Engine) runStages(ctx context.Context, s *askState, p phase) (result, error) {
	for _, st := range stages {
		if st.phase != p {
			continue
		}
		r, err := st.run(e, ctx, s)
		if err != nil {
			return r, err
		}
		if r.verdict.Effect != "" {
			s.verdict = r.verdict
		}
		if r.outcome != goOn {
			return r, nil
		}
	}
	return result{}, nil
}

// check runs the stages that may decide a request without a person. The verdict of s
// is then to allow, to deny or to ask. It also sets the digest of s: while the store is
// read, if it has to be.
func (e *Engine) check(ctx context.Context, s *askState) error {
	r, err := e.runStages(ctx, s, fromMemory)
	if err != nil {
		return err
	}
	if r.outcome == decided {
		return s.identify()
	}
	entitlements := e.beginEntitlements(ctx, s)
	if err := s.identify(); err != nil { // meanwhile
		return err
	}
	if _, err := s.sameness(); err != nil { // most requests that get here need it
		return err
	}
	if s.held, s.attendance, err = entitlements(); err != nil {
		return err
	}
	if r, err = e.checkEntitlements(ctx, s); err != nil || r.outcome != goOn {
		return err
	}
	if s.callAnswer, err = e.readCallAnswer(ctx, s); err != nil {
		return err
	}
	_, err = e.runStages(ctx, s, bySameCall)
	return err
}

// confirmTries is how often a request is checked by entitlements that change at that
// moment. After that a person is asked.
const confirmTries = 3

// checkEntitlements runs the stages that go by entitlements. An allow is confirmed at
// the store; if its basis has changed, the entitlements are read and checked again.
func (e *Engine) checkEntitlements(ctx context.Context, s *askState) (result, error) {
	for range confirmTries {
		r, err := e.runStages(ctx, s, byEntitlements)
		if err != nil || r.outcome != decided {
			return r, err
		}
		confirmed, err := e.confirmBasis(ctx, r.basis)
		if confirmed || err != nil {
			return r, err
		}
		s.verdict, s.permissions = s.rules.verdict, permissionsResult{holder: s.permissions.holder}
		if s.held, err = e.entitlementsOf(ctx, s.agent, s.request.SessionID); err != nil {
			return result{}, err
		}
	}
	s.verdict.Effect = policy.Ask
	return result{outcome: ask}, nil
}

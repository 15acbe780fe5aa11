package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// stages is the order in which a request is checked, in four phases. A stage decides the
// request, has a person asked, or goes on to the next one.
//
// By this engine's memory, without reading the store:
//
//  1. frozen: a freeze of all agents, of this agent or of the session denies the request.
//  2. rules: the policy allows, asks or denies. Its denial is final, and its allow too,
//     unless the session is managed.
//
// By the permissions and standing answers of the session and its agent. They come from a
// cache that may be a moment old, so an allow is confirmed at the store before it counts:
//
//  3. permissions: a managed session's permissions allow the calls that they cover; other
//     calls need a person. A request for permissions that the session has is allowed.
//  4. grants: if the policy asks, standing answers for more than one call, or the session's
//     permissions, allow the calls that they cover.
//
// By a person's answer to the same call, or a leave, read from the store:
//
//  5. denial: a remembered denial denies the call.
//  6. approval: an approval that came after the agent had stopped waiting allows the call,
//     once.
//  7. leave: the session's approver has left for a time and lets its calls of limited risk go
//     on.
//
// If no stage has decided, a person is asked. Each stage adds its part to the pending
// record, or refuses the request with an error:
//
//  8. admission: a session with too many pending requests gets no more.
//  9. foreground: the request of a background session is shown in the foreground session of
//     the same agent and user that was active last; if there is none, it is refused.
//  10. routing: the approvers who may decide, and their channels; if no approver can be
//     reached, the request is refused.
//  11. file: the file that the call writes, compared with the call for people; it decides
//     nothing.
//  12. reaches: the rules or permissions that an answer may allow beyond this call, and the
//     container in which the call runs if it is allowed.
//  13. deadline: the time limit, which depends on the session and on whether an approver
//     is at it.
//  14. turn: phones and chats show the request at once, after the approver at the session
//     had time to answer, or after earlier requests of the session.
//  15. joining: the record is stored. If an identical call is pending, this request becomes
//     a waiter of its question; otherwise it is a question of its own.
//
// A request that its agent may have sent before is checked like any other. Its record, or
// its decision in the log, then takes precedence over the verdict; see rejoin.
var stages = []stage{
	{"frozen", fromMemory, (*intake).checkFrozen},
	{"rules", fromMemory, (*intake).checkRules},
	{"permissions", byEntitlements, (*intake).checkPermissions},
	{"grants", byEntitlements, (*intake).checkGrants},
	{"denial", bySameCall, (*intake).checkDenial},
	{"approval", bySameCall, (*intake).checkApproval},
	{"leave", bySameCall, (*intake).checkLeave},
	{"admission", asking, (*intake).admit},
	{"foreground", asking, (*intake).chooseForeground},
	{"routing", asking, (*intake).route},
	{"file", asking, (*intake).readFile},
	{"reaches", asking, (*intake).offerReaches},
	{"deadline", asking, (*intake).setDeadline},
	{"turn", asking, (*intake).takeTurn},
	{"joining", asking, (*intake).storePending},
}

type stage struct {
	name  string
	phase phase
	run   func(*intake, context.Context, *askState) (result, error)
}

// A phase is a group of stages that read the same stores.
type phase int

const (
	fromMemory phase = iota
	byEntitlements
	bySameCall
	asking
)

// An outcome is how a stage ends.
type outcome int

const (
	goOn    outcome = iota // the next stage runs
	decided                // the result contains the decision, as its verdict
	ask                    // a person is asked; the remaining stages of the phase are skipped
)

type result struct {
	outcome outcome
	verdict policy.Verdict // a verdict that is not zero replaces the verdict of earlier stages
	basis   basis          // the stored entries that an allow depends on; they are confirmed before the allow counts
}

func decide(v policy.Verdict) result { return result{outcome: decided, verdict: v} }

// askState is a request on its way through the stages. Each stage reads the fields of earlier stages,
// and writes only its own fields. There are two exceptions: a request for permissions sets its
// foreground session early, and the stage "admission" may read newer settings.
type askState struct {
	agentRequest
	settings settingsSnapshot // the settings in force when the request came
	freezes  *freezeSnapshot  // the freezes in force when the request came
	ignores  bool             // from this engine's cache: the session's host has ignored a change that nod made to a call
	managed  bool             // from this engine's cache: the session has permissions of its own
	later    bool             // from this engine's cache: a later version of nod has limited the session in a way that this engine does not know
	verdict  policy.Verdict   // the verdict of all stages so far

	frozen      *schemas.Freeze // the freeze that denies the request
	rules       rulesResult     // the result of the stage "rules"
	held        entitlements    // the session's entitlements, read before the stage "permissions"
	attendance  attendance
	permissions permissionsResult // the result of the stage "permissions"
	callAnswer  *standingEntry    // the standing answer about this call, read before the stage "denial"; nil if there is none
	plan        promptPlan        // the plan that the stages of the last phase set
}

type rulesResult struct {
	verdict policy.Verdict
	call    policy.Call           // the request as the policy sees it
	policy  *policy.Policy        // the policy that decides the call; nil if it denies the call, may be out of date, or cannot be read
	run     *schemas.ContainedRun // the container, if the call runs contained
	updated json.RawMessage       // the input that replaces the agent's input; nil keeps the agent's
	note    string                // the effect of a change of the input that its user may miss, for the decision; or ""
}

// attendance tells whether a client is at a session, and how many pending questions the session has.
type attendance struct {
	lock *schemas.Lock // the input lock; nil if no client holds it
	open int           // the number of pending questions
}

// promptPlan holds the fields of a pending record that the last phase sets.
type promptPlan struct {
	at         time.Time // the time of the request, by the broker's clock
	revision   uint64    // the revision of the deletion marker that the record replaces; 0 without a marker
	foreground foreground
	routes     []schemas.Route
	onDisk     *schemas.DiskFile // the file that the call writes; nil if it was not read
	reaches    []schemas.Reach
	run        *schemas.ContainedRun // the contained run that an allow starts; nil means that the call runs as the agent wrote it
	limit      timeLimit
	next       schemas.Event // the event for which the timer is set
	entry      bus.Entry     // the record in its stored form
}

// timeLimit is how long a request may wait, and the tier of the timeout policy that sets this time.
type timeLimit struct {
	tier    schemas.Tier
	timeout time.Duration
}

// foreground is the session that shows the request of a background session. It is the zero
// value for the request of a foreground session.
type foreground struct {
	session string
	lock    *schemas.Lock // the session's input lock; nil if no client holds it
}

func (e *intake) runStages(ctx context.Context, s *askState, p phase) (result, error) {
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

// check runs the stages that may decide a request without a person, and stores the verdict and
// the request's digest in s.
func (e *intake) check(ctx context.Context, s *askState) error {
	r, err := e.runStages(ctx, s, fromMemory)
	if err != nil {
		return err
	}
	if r.outcome == decided {
		return s.identify()
	}
	entitlements := e.holdings.beginEntitlements(ctx, s)
	if err := s.identify(); err != nil { // the store is read while the digest is computed, which takes time
		return err
	}
	if _, err := s.sameness(); err != nil { // most of the next stages need the CallDigest
		return err
	}
	if s.held, s.attendance, err = entitlements(); err != nil {
		return err
	}
	if r, err = e.checkEntitlements(ctx, s); err != nil || r.outcome != goOn {
		return err
	}
	if s.callAnswer, err = e.holdings.readCallAnswer(ctx, s); err != nil {
		return err
	}
	_, err = e.runStages(ctx, s, bySameCall)
	return err
}

// confirmTries bounds the checks of a request whose entitlements change during each check. After the
// last check, a person is asked.
const confirmTries = 3

// checkEntitlements runs the stages that use entitlements, and confirms an allow at the store.
// If an entry that the allow depends on has changed, checkEntitlements reads the entitlements
// again and repeats these stages.
func (e *intake) checkEntitlements(ctx context.Context, s *askState) (result, error) {
	for range confirmTries {
		r, err := e.runStages(ctx, s, byEntitlements)
		if err != nil || r.outcome != decided {
			return r, err
		}
		confirmed, err := e.holdings.confirmBasis(ctx, r.basis)
		if confirmed || err != nil {
			return r, err
		}
		s.verdict, s.permissions = s.rules.verdict, permissionsResult{holder: s.permissions.holder}
		if s.held, err = e.holdings.entitlementsOf(ctx, s.agent, s.request.SessionID); err != nil {
			return result{}, err
		}
	}
	s.verdict.Effect = policy.Ask
	return result{outcome: ask}, nil
}

package engine

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// stageBench has an engine without stores, and a request that passes the engine's stages.
type stageBench struct {
	*require.Assertions
	t *testing.T
	e *intake
	s *askState
}

const stageSettings = `{
	"permissions": {"allow": ["Bash(make:*)"], "ask": ["Bash(git push:*)"], "deny": ["Bash(curl:*)"]},
	"approvers": {"people": [
		{"name": "ada", "identities": [{"connector": "terminal", "user_id": "ada"}]},
		{"name": "ben", "max_risk": "low", "identities": [{"connector": "web", "user_id": "ben"}]}
	]}
}`

func newStageBench(t *testing.T, settings, command string) *stageBench {
	t.Helper()
	b := &stageBench{Assertions: require.New(t), t: t}
	b.e = newEngine(Options{Host: "laptop"}).intake
	parsed, compiled, err := b.e.compile([]byte(settings))
	b.NoError(err)
	now := time.Now()
	b.e.clock.last.Store(&clockReading{Reading: bus.Reading{Broker: now, At: now}, wall: now})
	cacheReading(&b.e.freezes.watchedCache, frozenKey, reading[schemas.FreezeState]{began: now})
	details, err := json.Marshal(map[string]string{"command": command, "cwd": "/w"})
	b.NoError(err)
	b.s = &askState{
		agentRequest: agentRequest{agent: "claude", request: schemas.Request{
			SessionID: "S", PendingID: "P", Kind: schemas.KindToolCall, ToolName: "Bash",
			ActionType: schemas.ActionOther, ActionDetails: details, Host: "laptop", Project: "/w",
		}},
		settings: settingsSnapshot{revision: 1, settings: parsed, policy: compiled, needs: needsOf(parsed), read: now},
		freezes:  b.e.freezes.now(),
		held:     entitlements{own: collect(nil, now), agents: collect(nil, now)},
	}
	b.s.plan.at = now
	b.NoError(b.s.identify())
	return b
}

// runs sends the request through one stage of the pipeline and keeps the verdict.
func (b *stageBench) runs(name string) result {
	b.t.Helper()
	i := slices.IndexFunc(stages, func(st stage) bool { return st.name == name })
	b.NotEqual(-1, i, name)
	r, err := stages[i].run(b.e, b.t.Context(), b.s)
	b.NoError(err)
	if r.verdict.Effect != "" {
		b.s.verdict = r.verdict
	}
	return r
}

// refuses asserts that one stage refuses the request with this code.
func (b *stageBench) refuses(name string, code schemas.Code) {
	b.t.Helper()
	i := slices.IndexFunc(stages, func(st stage) bool { return st.name == name })
	_, err := stages[i].run(b.e, b.t.Context(), b.s)
	var refused *schemas.Error
	b.ErrorAs(err, &refused)
	b.Equal(code, refused.Code)
}

// holds gives the session a standing answer.
func (b *stageBench) holds(g schemas.StandingAnswer) {
	g.SessionID, g.Agent = "S", "claude"
	entry := &standingEntry{g, standingKey(sessionKey("S"), g.GrantID), 7}
	byID := map[string]*standingEntry{g.GrantID: entry}
	b.s.held.own = collect(byID, b.e.clock.now())
	b.s.held.perms = b.s.held.own.perms
}

// The documentation of the variable stages lists the stages in their order.
func TestStagesAreInOrder(t *testing.T) {
	source, err := os.ReadFile("pipeline.go")
	require.NoError(t, err)
	explained := regexp.MustCompile(`(?m)^//  (\d+)\. (\w+): `).FindAllStringSubmatch(string(source), -1)
	require.Len(t, explained, len(stages))
	for i, st := range stages {
		require.Equal(t, []string{strconv.Itoa(i + 1), st.name}, explained[i][1:])
		require.True(t, i == 0 || stages[i-1].phase <= st.phase, st.name)
	}
}

// A stage that decides, or has a person asked, ends its phase. The verdict of this stage
// counts.
func TestAStageEndsItsPhase(t *testing.T) {
	all := stages
	t.Cleanup(func() { stages = all })
	var ran []string
	add := func(name string, p phase, r result) {
		stages = append(stages, stage{name, p, func(*intake, context.Context, *askState) (result, error) {
			ran = append(ran, name)
			return r, nil
		}})
	}
	stages = nil
	add("other phase", asking, decide(policy.Verdict{Effect: policy.Deny}))
	add("asks", fromMemory, result{verdict: policy.Verdict{Effect: policy.Ask, Rule: "one"}})
	add("no opinion", fromMemory, result{})
	add("allows", fromMemory, decide(policy.Verdict{Effect: policy.Allow, Rule: "two"}))
	add("too late", fromMemory, decide(policy.Verdict{Effect: policy.Deny}))
	var e intake
	var s askState
	r, err := e.runStages(t.Context(), &s, fromMemory)
	require.NoError(t, err)
	require.Equal(t, decided, r.outcome)
	require.Equal(t, "two", s.verdict.Rule)
	require.Equal(t, []string{"asks", "no opinion", "allows"}, ran)
}

// If the basis of an allow has changed, the request is checked again with newly read
// entitlements. After confirmTries a person is asked.
func TestAnAllowIsCheckedAgainIfItsBasisChanged(t *testing.T) {
	b := newStageBench(t, stageSettings, "git push")
	b.e.clock.wall = time.Now
	b.e.clock.read = func(context.Context) (bus.Reading, error) {
		return bus.Reading{Broker: time.Now(), At: time.Now()}, nil
	}
	cacheReading(&b.e.sessionCache, sessionKey("S"), reading[schemas.Session]{value: schemas.Session{SessionID: "S", Agent: "claude", Background: true}, began: time.Now()})
	for _, owner := range []string{sessionKey("S"), agentKey("claude")} {
		o := b.e.standing.owner(owner)
		o.now, o.until = collect(nil, time.Now()), time.Now().Add(time.Hour)
	}
	all := stages
	t.Cleanup(func() { stages = all })
	over := &standingEntry{StandingAnswer: schemas.StandingAnswer{ExpiresAt: time.Now().Add(-time.Hour)}}
	tries, lasting := 0, confirmTries+1
	stages = []stage{{"allows", byEntitlements, func(_ *intake, _ context.Context, s *askState) (result, error) {
		b.Equal(policy.Ask, s.verdict.Effect)
		b.Equal(tries > 0, s.held.session.Background, "entitlements are read again")
		if tries++; tries < lasting {
			return result{outcome: decided, verdict: policy.Verdict{Effect: policy.Allow}, basis: basis{answers: []*standingEntry{over}}}, nil
		}
		return decide(policy.Verdict{Effect: policy.Allow}), nil
	}}}
	check := func() outcome {
		tries, b.s.held = 0, entitlements{}
		b.s.rules.verdict = policy.Verdict{Effect: policy.Ask, Rule: "default"}
		b.s.verdict = b.s.rules.verdict
		r, err := b.e.checkEntitlements(t.Context(), b.s)
		b.NoError(err)
		return r.outcome
	}
	b.Equal(ask, check())
	b.Equal(confirmTries, tries)
	b.Equal(b.s.rules.verdict, b.s.verdict)
	lasting = confirmTries
	b.Equal(decided, check())
	b.Equal(policy.Allow, b.s.verdict.Effect)
}

func TestStageFrozen(t *testing.T) {
	b := newStageBench(t, stageSettings, "make")
	b.Equal(goOn, b.runs("frozen").outcome)
	b.s.freezes = &freezeSnapshot{FreezeState: schemas.FreezeState{Freezes: []schemas.Freeze{{SessionID: "other"}}}}
	b.Equal(goOn, b.runs("frozen").outcome)
	b.s.freezes = &freezeSnapshot{FreezeState: schemas.FreezeState{Freezes: []schemas.Freeze{{Agent: "claude", By: schemas.By{Name: "ada"}}}}}
	b.Equal(decided, b.runs("frozen").outcome)
	b.Equal(policy.Deny, b.s.verdict.Effect)
	b.Equal("frozen by ada", b.s.verdict.Rule)
	b.NotNil(b.s.frozen)
}

func TestStageRules(t *testing.T) {
	for command, want := range map[string]struct {
		outcome outcome
		effect  policy.Effect
	}{
		"make test":    {decided, policy.Allow},
		"curl x.org":   {decided, policy.Deny},
		"git push":     {goOn, policy.Ask},
		"unheard-of x": {goOn, policy.Ask},
	} {
		b := newStageBench(t, stageSettings, command)
		b.Equal(want.outcome, b.runs("rules").outcome, command)
		b.Equal(want.effect, b.s.verdict.Effect, command)
	}
	b := newStageBench(t, stageSettings, "make test")
	b.s.managed = true
	b.Equal(goOn, b.runs("rules").outcome, "the permissions of the session decide")
	b.Equal(policy.Allow, b.s.verdict.Effect)
	b = newStageBench(t, stageSettings, "make test")
	b.s.settings.read = time.Now().Add(-staleAfter)
	b.Equal(goOn, b.runs("rules").outcome, "the settings may be old")
	b.Equal(policy.Ask, b.s.verdict.Effect)
	b.Nil(b.s.rules.policy)
}

func TestStagePermissions(t *testing.T) {
	read := func(path string) *stageBench {
		b := newStageBench(t, stageSettings, "")
		b.s.request.ToolName = "Read"
		b.s.request.ActionDetails = json.RawMessage(`{"file_path":"` + path + `"}`)
		b.s.managed = true
		b.s.held.session = schemas.Session{SessionID: "S", Permissions: &schemas.SessionPermissions{ReadDirs: []string{"/covered"}}}
		b.s.held.revision = 3
		b.runs("rules")
		return b
	}
	b := read("/covered/f")
	b.s.verdict.Effect = policy.Allow
	r := b.runs("permissions")
	b.Equal(decided, r.outcome)
	b.Equal(basis{session: "S", revision: 3}, r.basis, "the allow rests on the session's own permissions")

	b = read("/elsewhere/f")
	b.s.verdict.Effect = policy.Allow
	b.Equal(goOn, b.runs("permissions").outcome)
	b.Equal(policy.Ask, b.s.verdict.Effect, "even if the rules allow it")
	b.Len(b.s.permissions.missing, 1)
	b.holds(schemas.StandingAnswer{GrantID: "g", Rules: []schemas.RememberedRule{{Tool: "Read", Path: "/elsewhere/f"}}})
	b.Equal(goOn, b.runs("grants").outcome, "a grant does not replace a permission")
	b.runs("reaches")
	b.Equal([]schemas.Reach{{Permissions: tags(b.s.permissions.missing)}}, b.s.plan.reaches)
}

func TestStageGrants(t *testing.T) {
	b := newStageBench(t, stageSettings, "go test ./x")
	b.runs("rules")
	b.Equal(goOn, b.runs("permissions").outcome)
	b.Equal(goOn, b.runs("grants").outcome)
	b.holds(schemas.StandingAnswer{GrantID: "g", Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"go", "test"}, Prefix: true}}})
	r := b.runs("grants")
	b.Equal(decided, r.outcome)
	b.Equal(policy.Allow, b.s.verdict.Effect)
	b.Len(r.basis.answers, 1)

	b = newStageBench(t, stageSettings, "git push")
	b.runs("rules")
	b.holds(schemas.StandingAnswer{GrantID: "g", Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"git", "push"}, Prefix: true}}})
	b.Equal(goOn, b.runs("grants").outcome, "a rule that asks stands above it")
}

func TestStageDenial(t *testing.T) {
	b := newStageBench(t, stageSettings, "unheard-of x")
	b.runs("rules")
	b.Equal(goOn, b.runs("denial").outcome)
	denial := schemas.StandingAnswer{Effect: schemas.EffectDeny, By: schemas.By{Name: "ada"}, ExpiresAt: b.e.clock.now().Add(time.Minute)}
	b.s.callAnswer = &standingEntry{StandingAnswer: denial}
	b.Equal(goOn, b.runs("approval").outcome)
	b.Equal(decided, b.runs("denial").outcome)
	b.Equal(policy.Deny, b.s.verdict.Effect)
	b.Equal("denied by ada", b.s.verdict.Rule)
	b.s.callAnswer.ExpiresAt = b.e.clock.now()
	b.Equal(goOn, b.runs("denial").outcome, "it has expired")
}

// This test has no store, so it cannot show that an approval allows only one call;
// TestAnApprovalAllowsOneOfManyCalls shows that.
func TestStageApproval(t *testing.T) {
	b := newStageBench(t, stageSettings, "unheard-of x")
	b.Equal(goOn, b.runs("approval").outcome)
	b.s.callAnswer = &standingEntry{StandingAnswer: schemas.StandingAnswer{Limited: true, Uses: 1, For: []string{"P"}}}
	b.Equal(goOn, b.runs("denial").outcome)
	b.Equal(goOn, b.runs("approval").outcome, "the request's own record had the approval")
}

func TestStageAdmission(t *testing.T) {
	b := newStageBench(t, stageSettings, "git push")
	b.s.attendance.open = maxOpen - 1
	b.Equal(goOn, b.runs("admission").outcome)
	b.s.attendance.open = maxOpen
	b.refuses("admission", schemas.CodeForbidden)
}

// The request's session is not in the background, so this stage reads no store.
func TestStageForeground(t *testing.T) {
	b := newStageBench(t, stageSettings, "git push")
	b.Equal(goOn, b.runs("foreground").outcome)
	b.Empty(b.s.plan.foreground)
}

func TestStageRouting(t *testing.T) {
	b := newStageBench(t, stageSettings, "git push")
	b.s.verdict.Risk = schemas.RiskLow
	b.Equal(goOn, b.runs("routing").outcome)
	b.Len(b.s.plan.routes, 2)
	b.s.verdict.Risk = schemas.RiskHigh
	b.runs("routing")
	b.Equal([]schemas.Route{{Connector: "terminal", Recipient: "ada"}}, b.s.plan.routes)
	b = newStageBench(t, `{}`, "git push")
	b.refuses("routing", schemas.CodeUndeliverable)
}

func TestStageReaches(t *testing.T) {
	b := newStageBench(t, stageSettings, "npm run build")
	b.runs("rules")
	b.runs("reaches")
	b.NotEmpty(b.s.plan.reaches)
	b.s.permissions.unclear = true
	b.runs("reaches")
	b.Empty(b.s.plan.reaches)
}

func TestStageDeadline(t *testing.T) {
	b := newStageBench(t, stageSettings, "git push")
	settings := b.s.settings.settings
	b.s.verdict.Risk = schemas.RiskMedium
	b.runs("deadline")
	b.Equal(timeLimit{schemas.TierDisconnected, settings.DisconnectedTimeout()}, b.s.plan.limit)
	b.s.attendance.lock = &schemas.Lock{Holder: "ada"}
	b.runs("deadline")
	b.Equal(timeLimit{schemas.TierConnected, settings.ConnectedTimeout()}, b.s.plan.limit)
	b.s.attendance.lock.Kind = schemas.ClientVoice
	b.runs("deadline")
	b.Equal(timeLimit{schemas.TierVoice, settings.VoiceTimeout()}, b.s.plan.limit)
	b.s.attendance.lock.Holder = "ben"
	b.s.plan.routes = []schemas.Route{{Connector: "terminal", Recipient: "ada"}, {Connector: schemas.ClientVoice, Recipient: "ada"}}
	b.runs("deadline")
	b.Equal(schemas.TierDisconnected, b.s.plan.limit.tier, "ben may not decide about it")
	b.s.plan.routes = b.s.plan.routes[1:]
	b.runs("deadline")
	b.Equal(timeLimit{schemas.TierVoice, settings.VoiceTimeout()}, b.s.plan.limit, "only voice can answer")
	b.s.plan.foreground = foreground{"F", &schemas.Lock{Holder: "ada"}}
	b.runs("deadline")
	b.Equal(schemas.TierConnected, b.s.plan.limit.tier, "ada is at the session in whose place it asks")
	b.s.held.session.TimeoutSeconds = 60
	b.runs("deadline")
	b.Equal(timeLimit{schemas.TierSession, time.Minute}, b.s.plan.limit)
}

func TestStageTurn(t *testing.T) {
	b := newStageBench(t, stageSettings, "git push")
	limit := b.s.settings.settings.OpenPrompts()
	b.NotZero(limit)
	b.s.plan.routes = []schemas.Route{{Connector: "telegram", Recipient: "ada"}}
	b.s.plan.limit = timeLimit{schemas.TierDisconnected, time.Hour}
	b.runs("turn")
	b.Equal(schemas.EventDeadline, b.s.plan.next.Kind)
	b.s.attendance.open = limit
	b.runs("turn")
	b.Equal(schemas.EventRelease, b.s.plan.next.Kind)
	b.s.plan.limit.tier = schemas.TierVoice
	b.runs("turn")
	b.Equal(schemas.EventRelease, b.s.plan.next.Kind, "only voice can answer, and no client holds the lock")
	b.s.plan.limit.tier, b.s.verdict.Risk = schemas.TierConnected, schemas.RiskMedium
	b.s.attendance.lock = &schemas.Lock{Holder: "ada"}
	b.runs("turn")
	b.Equal(schemas.EventEscalate, b.s.plan.next.Kind)
	b.s.plan.routes = []schemas.Route{{Connector: "terminal", Recipient: "ada"}}
	b.runs("turn")
	b.Equal(schemas.EventDeadline, b.s.plan.next.Kind, "no phone or chat shows it")
}

// Calls with different commands or different routes have different question tokens.
func TestIdenticalCallsHaveTheSameQuestionToken(t *testing.T) {
	token := func(command, id, recipient string) string {
		b := newStageBench(t, stageSettings, command)
		b.s.request.PendingID = id
		rec := schemas.Record{Routes: []schemas.Route{{Connector: "terminal", Recipient: recipient}}}
		token, err := b.s.questionToken(&rec)
		b.NoError(err)
		return token
	}
	require.Equal(t, token("git push", "P", "ada"), token("git push", "Q", "ada"))
	require.NotEqual(t, token("git push", "P", "ada"), token("git push --force", "P", "ada"))
	require.NotEqual(t, token("git push", "P", "ada"), token("git push", "P", "ben"))
}

package people

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/schemas"
)

var at1421 = time.Date(2026, 1, 18, 14, 21, 5, 0, time.UTC)

func decided(outcome schemas.Outcome, kind schemas.OptionKind, by schemas.By, message string) *schemas.Decision {
	return &schemas.Decision{Outcome: outcome, OptionKind: kind, By: by, Message: message, DecidedAt: at1421}
}

func askedAt(at time.Time) *schemas.Prompt {
	return &schemas.Prompt{Request: schemas.Request{CreatedAt: at}}
}

func human(name, connector string) schemas.By {
	return schemas.By{Kind: schemas.ByHuman, Name: name, Connector: connector}
}

var (
	byPolicy = schemas.By{Kind: schemas.ByPolicy, Name: "Bash(rm:*)"}
	byTable  = schemas.By{Kind: schemas.ByPolicy, Name: "default"}
	byClock  = schemas.By{Kind: schemas.ByClock}
	byAgent  = schemas.By{Kind: schemas.ByAgent}
)

// The outcome of an agent's question is an answer, not an allow or a denial. The outcome of a plan is an
// allow or a denial.
func TestOutcomeOfAQuestion(t *testing.T) {
	question := askedAt(at1421.Add(-48 * time.Second))
	question.Request.Kind = schemas.KindQuestion
	for want, d := range map[string]*schemas.Decision{
		`✅ Answered · Ann · 14:21 UTC · Telegram · after 48 s · "the second"`: decided(schemas.Allowed, schemas.AllowOnce, human("Ann", "telegram"), "the second"),
		`⛔ Not answered · Bob · 14:21 UTC · web · "Leave it"`:                 decided(schemas.Denied, schemas.RejectOnce, human("Bob", "web"), "Leave it"),
		"⛔ Denied · the freeze by Ann · 14:21 UTC":                            decided(schemas.Denied, "", schemas.By{Kind: schemas.ByPolicy, Name: "frozen by Ann"}, ""),
		"⌛ Expired without an answer":                                         decided(schemas.TimedOut, "", byClock, ""),
		"🚫 Withdrawn: the agent stopped waiting":                              decided(schemas.Withdrawn, "", byAgent, "x"),
	} {
		assert.Equal(t, want, Outcome(d, question))
	}
	plan := askedAt(at1421)
	plan.Request.Kind, plan.Request.ActionDetails = schemas.KindQuestion, json.RawMessage(`{"plan":"# Mend it"}`)
	assert.Equal(t, "✅ Allowed once · Ann · 14:21 UTC · web · after 0 s", Outcome(decided(schemas.Allowed, schemas.AllowOnce, human("Ann", "web"), ""), plan))
}

func TestOutcome(t *testing.T) {
	asked := at1421.Add(-48 * time.Second)
	scoped := decided(schemas.Allowed, schemas.AllowOnce, human("Ann", "web"), "")
	scoped.Grant = &schemas.StandingAnswer{
		Scope: schemas.ScopeSession, Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"npm", "test"}, Project: "/p"}},
		CreatedAt: scoped.DecidedAt, ExpiresAt: scoped.DecidedAt.Add(30 * time.Minute),
	}
	changed := decided(schemas.Allowed, schemas.AllowOnce, human("Ann", "web"), "")
	changed.UpdatedInput = json.RawMessage(`{}`)
	for want, d := range map[string]*schemas.Decision{
		"✅ Allowed once · Ann · 14:21 UTC · Telegram · after 48 s":                                                              decided(schemas.Allowed, schemas.AllowOnce, human("Ann", "telegram"), ""),
		"✅ Allowed, and from now on Bash(npm test) in /p, in this session, for 30 minutes · Ann · 14:21 UTC · web · after 48 s": scoped,
		"✅ Allowed once, with changes · Ann · 14:21 UTC · web · after 48 s":                                                     changed,
		"✅ Allowed · the rule Bash(rm:*) · 14:21 UTC":                                                                           decided(schemas.Allowed, "", byPolicy, ""),
		`⛔ Denied · Bob · 14:21 UTC · web · "use make clean"`:                                                                   decided(schemas.Denied, schemas.RejectOnce, human("Bob", "web"), "use make clean"),
		"⛔ Denied, and the agent remembers it · Bob · 14:21 UTC · terminal":                                                     decided(schemas.Denied, schemas.RejectAlways, human("Bob", "terminal"), ""),
		"⛔ Denied · the rule Bash(rm:*) · 14:21 UTC":                                                                            decided(schemas.Denied, "", byPolicy, ""),
		"⛔ Denied · the freeze by Ann · 14:21 UTC":                                                                              decided(schemas.Denied, "", schemas.By{Kind: schemas.ByPolicy, Name: "frozen by Ann"}, ""),
		"✅ Allowed · the preset contained · 14:21 UTC":                                                                          decided(schemas.Allowed, "", schemas.By{Kind: schemas.ByPolicy, Name: "default contained"}, ""),
		"⛔ Denied · the built-in rules · 14:21 UTC":                                                                             decided(schemas.Denied, "", byTable, ""),
		"🚫 Dismissed · Ann · 14:21 UTC · my-channel":                                                                            decided(schemas.Cancelled, "", human("Ann", "my-channel"), ""),
		"⌛ Expired: denied automatically":                                                                                       decided(schemas.TimedOut, "", byClock, ""),
		"🚫 Withdrawn: the agent stopped waiting":                                                                                decided(schemas.Withdrawn, "", byAgent, "x"),
		"⛔ Denied · an approver · 14:21 UTC · web":                                                                              decided(schemas.Denied, "", human("", "web"), ""),
		"⛔ Not allowed: ended in a way that this version of nod does not know":                                                  decided("approved", schemas.AllowOnce, human("Ann", "web"), ""),
	} {
		assert.Equal(t, want, Outcome(d, askedAt(asked)))
	}
}

func TestOutcomeShowsTheDayAndOmitsUnknownDurations(t *testing.T) {
	d := decided(schemas.Allowed, schemas.AllowOnce, human("Ann", "web"), "")
	assert.Equal(t, "✅ Allowed once · Ann · 18 Jan 14:21 UTC · web · after 3 d", Outcome(d, askedAt(at1421.Add(-80*time.Hour))))
	assert.Equal(t, "✅ Allowed once · Ann · 14:21 UTC · web", Outcome(d, askedAt(time.Time{})))
	assert.Equal(t, "✅ Allowed once · Ann · 14:21 UTC · web", Outcome(d, askedAt(at1421.Add(time.Minute))))
}

// The outcome line contains the number of calls, and says if a call did not end as decided.
func TestOutcomeShowsItsCallsAndTheirAftermath(t *testing.T) {
	ran := func(kind schemas.AftermathKind, reason string) schemas.Aftermath {
		return schemas.Aftermath{PendingID: "r-1", Kind: kind, Reason: reason, At: at1421}
	}
	allowed := decided(schemas.Allowed, schemas.AllowOnce, human("Ann", "web"), "")
	denied := decided(schemas.Denied, schemas.RejectOnce, human("Bob", "web"), "")
	atTerminal, goneOn := ran(schemas.AftermathRan, "answered at the agent's terminal"), ran(schemas.AftermathNeverRan, "the agent had gone on")
	for want, c := range map[string]struct {
		d         *schemas.Decision
		waiting   int
		aftermath []schemas.Aftermath
	}{
		"✅ Allowed once · 3 calls · Ann · 14:21 UTC · web":                                               {allowed, 3, nil},
		"✅ Allowed once · Ann · 14:21 UTC · web":                                                         {allowed, 1, nil},
		"⛔ Denied · 2 calls · Bob · 14:21 UTC · web":                                                     {denied, 2, nil},
		"⌛ Expired: denied automatically · 2 calls":                                                      {decided(schemas.TimedOut, "", byClock, ""), 2, nil},
		"❗ Denied by Bob, but it ran: answered at the agent's terminal · 14:21 UTC · web":                {denied, 1, []schemas.Aftermath{atTerminal}},
		"❗ Denied by Bob, but 1 of 3 ran: answered at the agent's terminal · 3 calls · 14:21 UTC · web":  {denied, 3, []schemas.Aftermath{atTerminal, goneOn}},
		"🚫 Allowed once by Ann, but it never ran: the agent had gone on · 14:21 UTC · web":               {allowed, 1, []schemas.Aftermath{goneOn}},
		"🚫 Allowed once by Ann, but 2 of 2 never ran: the agent had gone on · 2 calls · 14:21 UTC · web": {allowed, 2, []schemas.Aftermath{goneOn, goneOn}},
		"✅ Allowed once · Ann · 14:21 UTC · web ":                                                        {allowed, 0, []schemas.Aftermath{atTerminal}}, // the call ran, as the decision had allowed
		"❗ Withdrawn: the agent stopped waiting, but it ran: answered at the agent's terminal":           {decided(schemas.Withdrawn, "", byAgent, ""), 1, []schemas.Aftermath{atTerminal}},
		"❗ Expired: denied automatically, but it ran: ⟦U+202E⟧":                                          {decided(schemas.TimedOut, "", byClock, ""), 1, []schemas.Aftermath{ran(schemas.AftermathRan, "\u202e")}},
	} {
		p := &schemas.Prompt{Waiting: c.waiting, Waiters: c.waiting, Aftermath: c.aftermath}
		assert.Equal(t, strings.TrimSpace(want), Outcome(c.d, p))
	}
}

func TestOutcomeIsOneBoundedLine(t *testing.T) {
	d := decided(schemas.Denied, "", human("Bob\n✅ Allowed", "web"), strings.Repeat("no\u202e\n", 5_000))
	line := Outcome(d, askedAt(time.Time{}))
	assert.True(t, strings.HasPrefix(line, `⛔ Denied · Bob⏎✅ Allowed · 14:21 UTC · web · "no⟦U+202E⟧⏎`))
	assert.True(t, strings.HasSuffix(line, `⟦…⟧"`))
	assert.Less(t, Cells(line), 200)
}

func TestOnlyAllowedReadsAsAllowed(t *testing.T) {
	for _, outcome := range []schemas.Outcome{schemas.Denied, schemas.Cancelled, schemas.TimedOut, schemas.Withdrawn, "", "ALLOWED", "new"} {
		for _, by := range []schemas.By{human("Ann", "web"), byPolicy, byClock, byAgent, {}} {
			d := decided(outcome, schemas.AllowOnce, by, "")
			assert.NotContains(t, Outcome(d, askedAt(at1421)), "✅")
			assert.NotContains(t, AlreadyDecided(d, at1421), "allowed this")
		}
	}
}

func TestRefusal(t *testing.T) {
	at1420 := time.Date(2026, 1, 18, 14, 20, 0, 0, time.UTC)
	with := func(code schemas.Code, outcome schemas.Outcome, kind schemas.OptionKind, by schemas.By) *schemas.Error {
		d := decided(outcome, kind, by, "")
		d.DecidedAt = at1420
		return schemas.Errorf(code, "x").WithDecision(d)
	}
	for want, err := range map[string]*schemas.Error{
		"Nothing changed: Bob denied this on the web at 14:20.":                                   with(schemas.CodeConflict, schemas.Denied, schemas.RejectOnce, human("Bob", "web")),
		"Nothing changed: Ann allowed this once on Telegram at 14:20.":                            with(schemas.CodeConflict, schemas.Allowed, schemas.AllowOnce, human("Ann", "telegram")),
		"Nothing changed: Ann allowed this in the terminal at 14:20, and the agent remembers it.": with(schemas.CodeConflict, schemas.Allowed, schemas.AllowAlways, human("Ann", "terminal")),
		"Nothing changed: Ann dismissed this by voice at 14:20.":                                  with(schemas.CodeConflict, schemas.Cancelled, "", human("Ann", "voice")),
		"Nothing changed: Ann denied this through pager at 14:20.":                                with(schemas.CodeConflict, schemas.Denied, "", human("Ann", "pager")),
		"Nothing changed: the rule Bash(rm:*) denied this at 14:20.":                              with(schemas.CodeConflict, schemas.Denied, "", byPolicy),
		"Nothing changed: the built-in rules allowed this at 14:20.":                              with(schemas.CodeConflict, schemas.Allowed, "", byTable),
		"Nothing changed: this expired at 14:20 and was denied automatically.":                    with(schemas.CodeStale, schemas.TimedOut, "", byClock),
		"Nothing changed: the agent stopped waiting at 14:20.":                                    with(schemas.CodeStale, schemas.Withdrawn, "", byAgent),
		"Nothing changed: this ended at 14:20 and was not allowed.":                               with(schemas.CodeStale, "new", "", byAgent),
		"Nothing changed: another answer came first.":                                             schemas.Errorf(schemas.CodeConflict, "x"),
		"Nothing changed: no such request is waiting for you.":                                    schemas.Errorf(schemas.CodeNotFound, "x"),
		"Nothing changed: you are not among those who may decide this.":                           schemas.Errorf(schemas.CodeForbidden, "x"),
		"Nothing changed: option_id is required⟦U+0007⟧":                                          schemas.Errorf(schemas.CodeValidation, "option_id is required\a"),
		NotConfirmed: schemas.Errorf(schemas.CodeUnavailable, "x"),
		"Nothing changed: this is no longer the request that you were shown. Look at it again before you answer.": schemas.Errorf(schemas.CodeStale, "x"),
		"Nothing changed: nod does not know who you are. An owner can let you in with nod pair.":                  schemas.Errorf(schemas.CodeUnauthorized, "x"),
	} {
		assert.Equal(t, want, Refusal(err, at1421))
	}
	yesterday := with(schemas.CodeConflict, schemas.Denied, schemas.RejectOnce, human("Bob", "web"))
	assert.Equal(t, "Nothing changed: Bob denied this on the web on 18 Jan at 14:20.", Refusal(yesterday, at1421.Add(24*time.Hour)))
	assert.Equal(t, NotConfirmed, Refusal(schemas.Errorf(schemas.CodeInternal, "secret"), at1421))
}

func TestAlreadyDecided(t *testing.T) {
	assert.Equal(t, "Nothing left to do: Bob denied this on the web at 14:21.",
		AlreadyDecided(decided(schemas.Denied, schemas.RejectOnce, human("Bob", "web"), ""), at1421))
}

func TestShortDuration(t *testing.T) {
	assert.Equal(t, "7 d", shortDuration(7*24*time.Hour-time.Second))
	assert.Equal(t, "6 d", shortDuration(7*24*time.Hour-2*time.Hour))
	assert.Equal(t, "90 s", shortDuration(90*time.Second))
}

func TestError(t *testing.T) {
	assert.Equal(t, "EOF", (&Error{Err: io.EOF}).Error())
	assert.ErrorIs(t, &Error{Permanent: true, Err: io.EOF}, io.EOF)
	for _, e := range []*Error{{}, {After: time.Second}, {Permanent: true}, {Unreachable: true}} {
		assert.NotEmpty(t, e.Error())
		var target *Error
		assert.True(t, errors.As(error(e), &target))
	}
}

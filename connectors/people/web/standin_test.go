package web_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// standIn stands in for nod, in memory and under the control of the test. Every user is an approver,
// and every answer counts.
type standIn struct {
	mu      sync.Mutex
	prompts map[string]schemas.Prompt
	answers []schemas.Answer
	grants  []schemas.StandingAnswer
	freezes []schemas.Freeze
	noThaw  *schemas.Error // if not nil, the reply to every thaw
	noShow  *schemas.Error // if not nil, the reply to every call of Show
	logged  []schemas.Page // the pages that Logged returns
	noLog   *schemas.Error // if not nil, the reply to every call of Logged
	web     *web.Server
}

// startStandIn starts an inbox that uses a stand-in. The rig has no real nod.
func startStandIn(t *testing.T) (*rig, *standIn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	s := &standIn{prompts: map[string]schemas.Prompt{}}
	var err error
	s.web, err = web.Open(web.Options{
		DataDir: t.TempDir(), Listen: httpserve.Listen{Addr: "127.0.0.1:0"}, Desk: s, Registry: s, LoginCodes: s, Records: s, Log: quiet(),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.web.Stop(context.Background())); cancel() })
	return &rig{Assertions: require.New(t), t: t, ctx: ctx, web: &embed.Web{Server: s.web}}, s
}

// shows stores a version of a request and sends it to the inbox.
func (s *standIn) shows(p schemas.Prompt) {
	s.mu.Lock()
	s.prompts[p.Key()] = p
	s.mu.Unlock()
	s.web.Show(p)
}

// learns stores a version of a request without sending it to the inbox.
func (s *standIn) learns(p schemas.Prompt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts[p.Key()] = p
}

func (s *standIn) withdraws(key string) {
	s.mu.Lock()
	p := s.prompts[key]
	if p.Decision != nil {
		s.mu.Unlock()
		return
	}
	p.Decision = &schemas.Decision{Outcome: schemas.Withdrawn, By: schemas.By{Kind: schemas.ByAgent}, DecidedAt: time.Now().UTC()}
	s.prompts[key] = p
	s.mu.Unlock()
	s.web.Show(p)
}

func (s *standIn) said() []schemas.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.answers)
}

func (s *standIn) Answer(_ context.Context, a schemas.Answer) (schemas.Decision, error) {
	s.mu.Lock()
	p := s.prompts[schemas.Key(a.SessionID, a.PendingID)]
	option, _ := p.Request.Option(a.OptionID)
	d := schemas.Decision{
		Type: schemas.TypeDecision, SessionID: a.SessionID, PendingID: a.PendingID, Outcome: schemas.Denied, OptionID: a.OptionID, OptionKind: option.Kind,
		By: schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "web"}, Message: a.Message, Digest: a.Digest, DecidedAt: time.Now().UTC(),
	}
	if option.Kind.Allows() {
		d.Outcome = schemas.Allowed
	} else {
		d.Grant = &schemas.StandingAnswer{
			GrantID: "denial-" + a.PendingID, Effect: schemas.EffectDeny, Scope: schemas.ScopeSession, SessionID: a.SessionID, Agent: p.Agent,
			Call: &schemas.ExactCall{ToolName: p.Request.ToolName, Title: p.Request.Title}, By: d.By, Question: a.PendingID, Message: a.Message,
			CreatedAt: d.DecidedAt, ExpiresAt: d.DecidedAt.Add(10 * time.Minute),
		}
		s.grants = append(s.grants, *d.Grant)
	}
	s.answers = append(s.answers, a)
	p.Decision, p.Waiters, p.Waiting = &d, a.Waiters, a.Waiters // later calls belong to a new question
	p.Revision++
	s.prompts[p.Key()] = p
	s.mu.Unlock()
	s.web.Show(p)
	return d, nil
}

func (s *standIn) EachPending(context.Context, schemas.Query, func([]schemas.Prompt) error) error {
	return nil
}

func (s *standIn) Show(_ context.Context, session, id string) (schemas.Prompt, schemas.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, known := s.prompts[schemas.Key(session, id)]
	if s.noShow != nil {
		return p, schemas.Page{}, s.noShow
	}
	if !known {
		return p, schemas.Page{}, schemas.Errorf(schemas.CodeNotFound, "unknown")
	}
	return p, schemas.Page{Now: time.Now().UTC(), Prompts: []schemas.Prompt{p}}, nil
}

func (s *standIn) Hold(context.Context, schemas.Presence) (schemas.Lock, error) {
	return schemas.Lock{Type: schemas.TypeLock}, nil
}

func (s *standIn) Approver(_ context.Context, user string) (schemas.Approver, error) {
	return schemas.Approver{Name: user}, nil
}

func (s *standIn) Freezes(context.Context) ([]schemas.Freeze, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freezes, nil
}

func (s *standIn) Freeze(context.Context, schemas.FreezeRequest) (schemas.FreezeState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freezes = []schemas.Freeze{{By: schemas.By{Kind: schemas.ByHuman, Name: "Ann"}, At: time.Now()}}
	return schemas.FreezeState{Freezes: s.freezes}, nil
}

func (s *standIn) Thaw(context.Context, schemas.FreezeRequest) (schemas.FreezeState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noThaw != nil {
		return schemas.FreezeState{}, s.noThaw
	}
	return schemas.FreezeState{}, nil
}

func (s *standIn) Now(context.Context) (time.Time, error) { return time.Now().UTC(), nil }

func (s *standIn) NotifyAfter(context.Context) (time.Duration, error) { return time.Minute, nil }

func (s *standIn) RedeemLoginCode(context.Context, string) (string, error) {
	return "", schemas.Errorf(schemas.CodeNotFound, "unknown")
}

func (s *standIn) SpendLoginCode(context.Context, string, time.Time) (bool, error) { return true, nil }

func (s *standIn) LoginCodeSpent(context.Context, string) (bool, error) { return false, nil }

func (s *standIn) EachDecided(_ context.Context, session string, f func([]schemas.Prompt) error) error {
	return f(s.decided(session))
}

// Logged returns the pages of the field logged, one after another.
func (s *standIn) Logged(_ context.Context, _, _, after string) (schemas.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noLog != nil {
		return schemas.Page{}, s.noLog
	}
	n, _ := strconv.Atoi(after)
	if n >= len(s.logged) {
		return schemas.Page{Log: &schemas.LogExtent{}}, nil
	}
	page := s.logged[n]
	if n+1 < len(s.logged) {
		page.Next = strconv.Itoa(n + 1)
	}
	return page, nil
}

func (s *standIn) decided(session string) (all []schemas.Prompt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.prompts {
		if p.Decision != nil && (session == "" || session == p.SessionID) {
			all = append(all, p)
		}
	}
	return all
}

func (s *standIn) Grants(context.Context, string) ([]schemas.StandingAnswer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.grants), nil
}

func (s *standIn) Revoke(_ context.Context, g *schemas.StandingAnswer, user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.grants {
		if s.grants[i].GrantID == g.GrantID {
			s.grants[i].RevokedAt, s.grants[i].RevokedBy = time.Now().UTC(), user
		}
	}
	return nil
}

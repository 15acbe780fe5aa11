package peopletest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// SingleDesk stands in for nod in the tests of one channel. It has one request, which Ann may see, and
// records the answers. It is safe for concurrent use, except for the field Prompt.
type SingleDesk struct {
	people.Desk
	mu      sync.Mutex
	Prompt  schemas.Prompt
	said    []schemas.Answer
	handled map[string]bool
	codes   []string
	freezes int
}

// NewSingleDesk returns a desk with a request to run "make" on this channel. The functions in change may
// alter the prompt.
func NewSingleDesk(t *testing.T, channel string, change ...func(*schemas.Prompt)) *SingleDesk {
	r := schemas.Request{
		Type: schemas.TypeRequest, SessionID: "S-1", PendingID: "perm-1", Kind: schemas.KindToolCall, Title: "t", ToolName: "Bash",
		ActionType: schemas.ActionCommand, ActionDetails: []byte(`{"command":"make"}`), Options: schemas.DefaultOptions(), CreatedAt: time.Now().UTC(),
	}
	p := schemas.Prompt{
		Type: schemas.TypePrompt, SessionID: "S-1", PendingID: "perm-1", Connector: channel, Recipient: Ann, Agent: "local",
		Request: r, Risk: schemas.RiskLow, Deadline: time.Now().Add(time.Hour), Waiters: 1, Waiting: 1,
	}
	for _, c := range change {
		c(&p)
	}
	var err error
	p.Digest, err = schemas.Digest(&p.Request)
	require.NoError(t, err)
	return &SingleDesk{Prompt: p, handled: map[string]bool{}}
}

// Answers returns the submitted answers, oldest first.
func (d *SingleDesk) Answers() []schemas.Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]schemas.Answer{}, d.said...)
}

// Codes returns the submitted pairing codes, each after the person's user id and a space.
func (d *SingleDesk) Codes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.codes)
}

// Freezes returns the number of freezes and thaws.
func (d *SingleDesk) Freezes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.freezes
}

func (d *SingleDesk) Answer(_ context.Context, a schemas.Answer) (schemas.Decision, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said = append(d.said, a)
	if a.CodeWord == "wrong" {
		return schemas.Decision{}, schemas.Errorf(schemas.CodeForbidden, "not the code word")
	}
	o, _ := d.Prompt.Request.Option(a.OptionID)
	out := schemas.Decision{Outcome: schemas.Denied, OptionKind: o.Kind, By: schemas.By{Kind: schemas.ByHuman, Name: "Ann"}, DecidedAt: time.Now(), UpdatedInput: a.UpdatedInput}
	if o.Kind.Allows() {
		out.Outcome = schemas.Allowed
	}
	return out, nil
}

func (d *SingleDesk) EachPending(_ context.Context, q schemas.Query, f func([]schemas.Prompt) error) error {
	if q.Recipient != Ann {
		return nil
	}
	return f([]schemas.Prompt{d.Prompt})
}

func (d *SingleDesk) Show(_ context.Context, session, id string) (schemas.Prompt, schemas.Page, error) {
	if session != "S-1" || id != "perm-1" {
		return schemas.Prompt{}, schemas.Page{}, schemas.Errorf(schemas.CodeNotFound, "no request is known")
	}
	return d.Prompt, schemas.Page{Now: time.Now()}, nil
}

func (d *SingleDesk) Handled(_ context.Context, id string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.handled[id], nil
}

func (d *SingleDesk) MarkHandled(_ context.Context, id string, _ time.Time) (first bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first, d.handled[id] = !d.handled[id], true
	return first, nil
}

func (d *SingleDesk) Pair(_ context.Context, code string, from schemas.From) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.codes = append(d.codes, from.UserID+" "+code)
	return nil
}

func (d *SingleDesk) Freeze(context.Context, schemas.FreezeRequest) (schemas.FreezeState, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.freezes++
	return schemas.FreezeState{}, nil
}

func (d *SingleDesk) Thaw(ctx context.Context, b schemas.FreezeRequest) (schemas.FreezeState, error) {
	return d.Freeze(ctx, b)
}

func (d *SingleDesk) LoginLink(context.Context, schemas.From) (schemas.LoginCode, error) {
	return schemas.LoginCode{URL: "https://nod.example.com", Code: "c0de", Until: time.Now().Add(time.Minute)}, nil
}

package bench

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// Settings name one approver, who answers at the terminal.
const Settings = `{"approvers":{"people":[{"name":"Ann","identities":[{"connector":"terminal","user_id":"ann"}]}]}}`

// Session names that begin with patient are those of sessions whose requests the approver leaves
// pending.
const patient = "patient-"

// Nod is a running nod with an agent, and with an approver who allows every request that is shown,
// once.
type Nod struct {
	nod             *embed.Nod
	agent, terminal *bus.Conn
	asker           *bus.Asker
	desk            *connector.Desk
	system          *actors.System
	viewer          *connector.Viewer
	calls           atomic.Int64
	first           string // a number that differs in each Nod, so that no input is used twice on the same stores
	closed          atomic.Bool
	fail            func(error)
}

// StartNod starts a nod, an agent and an approver. The function fail is called with the errors of the
// approver. The caller must Close the result.
func StartNod(ctx context.Context, o embed.Options, fail func(error)) (*Nod, error) {
	return startNod(ctx, o, fail, true)
}

// startNod does the work of StartNod, but starts the approver only if the parameter answers is true.
func startNod(ctx context.Context, o embed.Options, fail func(error), answers bool) (*Nod, error) {
	n := &Nod{fail: fail, first: bus.NewID()}
	o.Settings = []byte(Settings)
	var err error
	if n.nod, err = embed.Start(ctx, o); err == nil {
		if err = n.connect(ctx, answers); err == nil {
			return n, nil
		}
	}
	return nil, bus.JoinErrors(err, n.Close())
}

func (n *Nod) connect(ctx context.Context, answers bool) (err error) {
	if n.agent, err = n.nod.Connect(ctx, roles.AgentID("local")); err != nil {
		return err
	}
	n.asker = bus.NewAsker(n.agent, "local")
	if n.terminal, err = n.nod.Connect(ctx, roles.ConnectorID("terminal")); err != nil {
		return err
	}
	n.desk = connector.NewDesk(n.terminal, "terminal")
	if !answers {
		return nil
	}
	quiet := slog.New(slog.DiscardHandler)
	n.system = actors.NewSystem(quiet)
	n.viewer, err = connector.View(ctx, n.system, n.terminal, "terminal", quiet, func(p schemas.Prompt) {
		if p.Decision == nil && !strings.HasPrefix(p.SessionID, patient) {
			go n.allow(p.SessionID, p.PendingID, p.Digest)
		}
	})
	return err
}

func (n *Nod) allow(session, id, digest string) {
	_, err := n.desk.Answer(context.Background(), schemas.Answer{
		SessionID: session, PendingID: id, Digest: digest, OptionID: "allow_once", From: schemas.From{UserID: "ann"},
	})
	if err != nil && !n.closed.Load() {
		n.fail(err)
	}
}

// Request returns a request for a tool call.
func Request(session, tool, details string, action schemas.ActionType) schemas.Request {
	return schemas.Request{
		SessionID: session, Kind: schemas.KindToolCall, Title: "Use " + tool, ToolName: tool,
		ActionType: action, ActionDetails: []byte(details), Reason: "clean rebuild", AgentName: "bench",
	}
}

// forPerson returns a request that no rule decides. Each request has a different input, because nod
// decides identical calls together.
func (n *Nod) forPerson(session string) schemas.Request {
	details := fmt.Sprintf(`{"command":"rm -rf build%s%06d","cwd":"/workspace"}`, n.first, n.calls.Add(1))
	return Request(session, "Frobnicate", details, schemas.ActionOther)
}

// Ask sends a request that must be allowed. The parameter by is the kind of party, such as a person,
// that must allow it. Any other outcome is an error.
func (n *Nod) Ask(ctx context.Context, q schemas.Request, by schemas.ByKind) error {
	d, err := n.asker.Ask(ctx, q)
	if err == nil && (d.Outcome != schemas.Allowed || d.By.Kind != by) {
		err = fmt.Errorf("a request was %s by %s instead of allowed by %s", d.Outcome, d.By.Kind, by)
	}
	return err
}

// Automatic sends a request that a rule decides, and gets the decision.
func (n *Nod) Automatic(ctx context.Context, session string) error {
	return n.Ask(ctx, Request(session, "Glob", `{"pattern":"**/*_test.go","path":"/workspace","cwd":"/workspace"}`, schemas.ActionFileRead), schemas.ByPolicy)
}

// Person sends a request, and gets the approver's decision.
func (n *Nod) Person(ctx context.Context, session string) error {
	return n.Ask(ctx, n.forPerson(session), schemas.ByHuman)
}

// Submit sends a request, and returns once the request is stored. The request stays pending.
func (n *Nod) Submit(ctx context.Context, session string) error {
	r, err := n.asker.Submit(ctx, n.forPerson(patient+session))
	if err == nil {
		r.Drop()
	}
	return err
}

// personWithoutViewer does the work of Person on a nod without a viewer, so it answers the request
// itself.
func (n *Nod) personWithoutViewer(ctx context.Context, session string) error {
	r, err := n.asker.Submit(ctx, n.forPerson(session))
	if err != nil {
		return err
	}
	n.allow(session, r.Receipt.PendingID, r.Receipt.Digest)
	_, err = r.Await(ctx)
	return err
}

// Close stops nod.
func (n *Nod) Close() error {
	n.closed.Store(true)
	ctx := context.Background()
	var errs []error
	if n.viewer != nil {
		errs = append(errs, n.viewer.Stop(ctx))
	}
	if n.system != nil {
		n.system.Stop()
	}
	if n.asker != nil {
		n.asker.Close()
	}
	for _, c := range []*bus.Conn{n.agent, n.terminal} {
		if c != nil {
			c.Close()
		}
	}
	if n.nod != nil {
		errs = append(errs, n.nod.Stop(ctx))
	}
	return bus.JoinErrors(errs...)
}

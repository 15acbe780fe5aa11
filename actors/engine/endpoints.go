package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// handlers returns the engine's handlers, one for each endpoint of schemas.
func (e *Engine) handlers() []handler {
	return []handler{
		handle(schemas.RequestEndpoint, e.intake.ask),
		handle(schemas.WithdrawEndpoint, e.withdrawals.withdraw),
		handle(schemas.HostResolvedEndpoint, e.withdrawals.hostResolved),
		handle(schemas.RunEndpoint, e.intake.run),
		handle(schemas.RanEndpoint, e.intake.ran),
		handle(schemas.AwaitEndpoint, e.withdrawals.await),
		handle(schemas.ShareEndpoint, e.holdings.share),
		handle(schemas.GateEndpoint, e.holdings.gate),
		handle(schemas.OwnSessionEndpoint, e.holdings.ownSession),
		handle(schemas.NoticesEndpoint, e.holdings.takeNotices),

		handle(schemas.AnswerEndpoint, e.connectors.answer),
		handle(schemas.PresenceEndpoint, e.connectors.presence),
		handle(schemas.RegisterEndpoint, e.connectors.register),
		handle(schemas.ShownEndpoint, e.connectors.shown),
		handle(schemas.DeliveryEndpoint, e.connectors.delivery),

		handle(schemas.PendingEndpoint, e.connectors.listPending),
		handle(schemas.HistoryEndpoint, e.connectors.listHistory),
		handle(schemas.ShowEndpoint, e.connectors.show),
		handle(schemas.SessionEndpoint, e.connectors.showSession),
		handle(schemas.SettingsEndpoint, e.connectors.showSettings),
		handle(schemas.UnsettledEndpoint, e.connectors.listUnsettled),
		handle(schemas.GrantsEndpoint, e.holdings.listGrants),

		handle(schemas.ChangeSettingsEndpoint, e.admin.changeSettings),
		handle(schemas.ChangeSessionEndpoint, e.admin.changeSession),
		handle(schemas.RevokeEndpoint, e.holdings.revoke),
		handle(schemas.LeaveEndpoint, e.admin.leave),
		handle(schemas.FreezeEndpoint, e.admin.freeze),
		handle(schemas.ThawEndpoint, e.admin.thaw),
		handle(schemas.LoginCodeEndpoint, e.admin.loginCode),
		handle(schemas.PairingEndpoint, e.admin.pair),
	}
}

type handler struct {
	schemas.Address
	run func(context.Context, *bus.Call) error
}

// caller is the sender of a call. The broker has checked the sender's name.
type caller struct {
	name string          // the name of the agent or connector
	body json.RawMessage // the message as received, byte for byte
	call *bus.Call
	then []func()
}

// afterReply registers a function that runs after the reply to this call, even if the handler fails or
// panics. The last registered function runs first.
func (c *caller) afterReply(f func()) { c.then = append(c.then, f) }

func (c *caller) replied() {
	for _, f := range c.then {
		defer f()
	}
}

// handle returns the handler of an endpoint. The handler decodes and checks each message, and
// replies with the result of f.
func handle[Q, R any](at schemas.Endpoint[Q, R], f func(context.Context, *caller, *Q) (R, error)) handler {
	return handler{at.Address, func(ctx context.Context, call *bus.Call) error {
		c := &caller{name: call.Tokens[0], body: call.Data, call: call}
		defer c.replied()
		var message Q
		if err := schemas.Decode(call.Data, &message); err != nil {
			return err
		}
		if m, ok := any(&message).(interface{ Key() string }); ok && at.NamesRequest() && m.Key() != schemas.Key(call.Tokens[1], call.Tokens[2]) {
			return schemas.Errorf(schemas.CodeValidation, "session_id, pending_id: the message names other ids than its subject")
		}
		reply, err := f(ctx, c, &message)
		if err != nil {
			return err
		}
		call.Reply(reply)
		return nil
	}}
}

// endpoints returns the engine's bus endpoints, one for each verb. Calls that name the same request
// run one after another, and all other calls run in parallel.
func (e *Engine) endpoints() []bus.Endpoint {
	handlers := map[string][]handler{} // the handlers by verb
	for _, h := range e.handlers() {
		handlers[h.Verb] = append(handlers[h.Verb], h)
	}
	var all []bus.Endpoint
	for verb, of := range handlers {
		lanes, key := e.sessions, func(t []string) string { return t[0] + "." + bus.NewID() }
		if of[0].NamesRequest() {
			lanes, key = e.records, func(t []string) string { return schemas.Key(t[1], t[2]) }
		}
		all = append(all, bus.Endpoint{Name: verb, Verb: verb, Tokens: of[0].Tokens, Handle: func(c *bus.Call) {
			lanes.Send(key(c.Tokens), callJob{c, of})
		}})
	}
	return all
}

// callJob handles a bus call in a lane. The call gets exactly one reply, even after a panic.
type callJob struct {
	*bus.Call
	handlers []handler // the handlers for the verb of the call
}

func (c callJob) Run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := c.handle(ctx); err != nil {
		c.Fail(err)
	}
}

func (c callJob) handle(ctx context.Context) error {
	op := c.Tokens[len(c.Tokens)-1]
	for _, h := range c.handlers {
		if h.Op == "" || h.Op == op {
			return h.run(ctx, c.Call)
		}
	}
	kind := "operation"
	if c.handlers[0].Verb == "query" {
		kind = "query"
	}
	return schemas.Errorf(schemas.CodeUnknownAction, "there is no %s %q", kind, op)
}

func (c callJob) Failed(reason any) { c.Fail(fmt.Errorf("panic: %v", reason)) }

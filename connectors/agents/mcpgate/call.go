package mcpgate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/relay"
	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// call is a tools/call that is not decided yet. It gets only one answer, because only the goroutine that
// removes it from gate.open may answer it or send it to the server.
type call struct {
	id       json.RawMessage
	key      string
	tool     string
	params   map[string]json.RawMessage
	progress json.RawMessage // the client's progress token; nil if the client did not ask for progress
	ctx      context.Context
	stop     context.CancelCauseFunc
}

// callFields are the parameters of tools/call in all versions of the protocol. The gate refuses a call
// with any other parameter, because people would not see it.
var callFields = []string{"name", "arguments", "_meta", "task", "inputResponses", "requestState"}

// readCall parses the parameters of a tools/call. The client gets its error.
func readCall(m message) (*call, error) {
	fields, err := members(m.params, callFields...)
	if err != nil {
		return nil, fmt.Errorf("params: %w", err)
	}
	for name := range fields {
		if !slices.Contains(callFields, name) {
			return nil, fmt.Errorf("params: nod does not know the field %q of a tools/call", name)
		}
	}
	c := &call{id: m.id, key: m.key, params: fields}
	if name := fields["name"]; json.Unmarshal(name, &c.tool) != nil || c.tool == "" {
		return nil, errors.New("params.name: the name of the tool is missing")
	}
	if !agents.IsObject(c.arguments()) {
		return nil, errors.New("params.arguments: must be a JSON object")
	}
	if meta, err := members(fields["_meta"], "progressToken"); err == nil && relay.IDKey(meta["progressToken"]) != "" {
		c.progress = meta["progressToken"]
	}
	return c, nil
}

// arguments returns the arguments of the call, or {} if the call has none.
func (c *call) arguments() json.RawMessage {
	if raw := bytes.TrimSpace(c.params["arguments"]); len(raw) > 0 && string(raw) != "null" {
		return raw
	}
	return json.RawMessage("{}")
}

// line returns the line for the server, with the allowed arguments.
func (c *call) line(allowed json.RawMessage) ([]byte, error) {
	if _, there := c.params["arguments"]; there || string(allowed) != "{}" {
		c.params["arguments"] = allowed
	}
	line, err := encode(envelope{ID: c.id, Method: methodCall, Params: c.params})
	return oneLine(line), err
}

// judge starts to ask nod about a call. It drops a call without an id, because the protocol has no
// response to such a call with which the gate could refuse it.
func (g *gate) judge(m message) {
	if m.key == "" {
		g.opts.Log.Warn("mcp gate: a tools/call without an id was dropped")
		return
	}
	c, err := readCall(m)
	if err != nil {
		g.refuse(refusal{code: codeParams, id: m.id, error: err})
		return
	}
	c.ctx, c.stop = context.WithCancelCause(context.Background())
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone {
		c.stop(errClientGone)
		return
	}
	g.open[c.key] = c
	g.calls.Go(func() { g.run(c) })
}

// run asks nod about a call, and sends the call to the server or answers it with a denial.
func (g *gate) run(c *call) {
	defer c.stop(nil)
	defer func() {
		if p := recover(); p != nil {
			g.opts.Log.Error("mcp gate: a call failed and was refused", "panic", p)
			g.deny(c, "nod failed on this call and refused it.")
		}
	}()
	stopProgress := g.keepAlive(c)
	arguments, denied := g.decide(c)
	stopProgress() // before the response, because no progress notification may follow it
	if denied != "" {
		g.deny(c, denied)
		return
	}
	line, err := c.line(arguments)
	if err != nil {
		g.deny(c, "nod could not write the call and refused it: "+err.Error())
		return
	}
	g.sending.Lock()
	defer g.sending.Unlock()
	if g.take(c, true) {
		g.send(line)
	}
}

// take removes a call from the open calls and returns true. Only the caller that gets true may answer
// the call or send it to the server. take returns false if the call is over. With toServer, the gate
// accepts the server's response to the call from now on.
func (g *gate) take(c *call, toServer bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[c.key] != c {
		return false
	}
	delete(g.open, c.key)
	if toServer {
		g.sent[c.key] = methodCall
	}
	return true
}

func (g *gate) deny(c *call, why string) {
	if g.take(c, false) {
		g.tell(denial(c.id, why))
	}
}

// decide asks nod about a call. It returns the arguments for the server, or the reason for the denial.
func (g *gate) decide(c *call) (arguments json.RawMessage, denied string) {
	if why := g.acceptChange(c); why != "" {
		return nil, why
	}
	r, err := g.request(c)
	if err != nil {
		return nil, "nod refused the call: " + err.Error()
	}
	d, err := g.ask(c, r)
	if err != nil {
		return nil, "Not allowed, because nod could not get a decision: " + err.Error()
	}
	if reply := agents.DescribeDecision(&r, &d); !reply.Allowed {
		return nil, reply.Text
	}
	arguments = c.arguments()
	if d.UpdatedInput != nil {
		if arguments, err = c.edited(d.UpdatedInput); err != nil {
			return nil, "Allowed with an edit that cannot be carried out: " + err.Error()
		}
	}
	if err := g.tools.allow(c.tool); err != nil {
		return nil, "nod refused the call: " + err.Error()
	}
	return arguments, ""
}

// acceptChange asks a person whether to accept a tool whose definition differs from the one with which
// nod last allowed a call. No rule can answer this. The result is the reason of a denial, or "".
func (g *gate) acceptChange(c *call) (denied string) {
	_, _, change, changed := g.tools.find(c.tool)
	if !changed {
		return ""
	}
	r := g.describe(c)
	r.Kind, r.ActionType, r.Title = schemas.KindQuestion, schemas.ActionOther, "An MCP tool has changed"
	r.Options = []schemas.Option{
		{OptionID: "accept", Name: "Accept the change", Kind: schemas.AllowOnce},
		{OptionID: "refuse", Name: "Refuse the call", Kind: schemas.RejectOnce},
	}
	var err error
	r.ActionDetails, err = schemas.Encode(map[string]string{
		"question":   fmt.Sprintf("The server %s now describes its tool %q differently. Accept it as it is now? The call itself is decided afterwards.", g.opts.Name, c.tool),
		"difference": change.difference(), "server": g.opts.Server,
	})
	var d schemas.Decision
	if err == nil {
		d, err = g.ask(c, r)
	}
	if err == nil && agents.Allows(r, d) && d.By.Kind == schemas.ByHuman && d.OptionID == "accept" {
		err = g.tools.accept(c.tool, change)
		if err == nil {
			return g.acceptChange(c) // once more, because the tool may have changed while the person decided
		}
	}
	why := "The tool has changed since it was last allowed, and the change was not accepted."
	if err != nil {
		return why + " " + err.Error()
	}
	return why + " " + agents.DescribeDecision(&r, &d).Text
}

// timeoutWords are words in the reason of a cancellation that a client sends because of its own time
// limit. Only such a cancellation leaves nod's question pending.
var timeoutWords = lazyregexp.New(`(?i)time(d)?[ -]?out|deadline`)

// cancel handles a client's cancellation of a request. If the request is an open call, cancel ends the call
// and returns true. Otherwise it returns false, and the caller must pass the cancellation on to the server.
func (g *gate) cancel(m message) bool {
	fields, _ := members(m.params)
	var reason string
	_ = json.Unmarshal(fields["reason"], &reason) // a reason that is not a text counts as unknown
	cause := errCancelled
	if timeoutWords.MatchString(reason) {
		cause = errTimedOut
	}
	g.sending.Lock()
	defer g.sending.Unlock()
	return g.end(relay.IDKey(fields["requestId"]), cause) != nil
}

// end ends the open call with this id key, and returns the call. It returns nil if there is no such call.
func (g *gate) end(key string, why error) *call {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.open[key]
	if c != nil {
		delete(g.open, key)
		c.stop(why)
	}
	return c
}

// refuseReused checks whether another request with the id of the request m has no response yet. If so,
// it refuses m and returns true, because the client could confuse the responses. If the other request is
// an open call, it refuses this call too.
func (g *gate) refuseReused(m message) bool {
	c := g.end(m.key, errReused)
	g.mu.Lock()
	_, sent := g.sent[m.key]
	g.mu.Unlock()
	if c == nil && !sent {
		return false
	}
	if c != nil {
		g.tell(denial(c.id, "nod refused the call: "+errReused.Error()))
	}
	g.refuse(refusal{code: codeRequest, id: m.id, error: errors.New("its id is that of another request")})
	return true
}

// keepAlive sends progress notifications until the caller calls stop, if the client wants them. The
// first comes after firstProgress, so that there is none if a rule decides the call. Their progress
// stays far below 1, so that the server can continue with higher numbers.
func (g *gate) keepAlive(c *call) (stop func()) {
	if c.progress == nil {
		return func() {}
	}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(c.ctx)
	go func() {
		defer close(ended)
		tick := time.NewTimer(min(firstProgress, g.opts.Progress))
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			g.tell(envelope{Method: methodProgress, Params: map[string]any{
				"progressToken": c.progress, "progress": float64(n) / 1e6, "message": "waiting for nod's decision; a person may have to answer",
			}})
			tick.Reset(g.opts.Progress)
		}
	}()
	return func() { cancel(); <-ended }
}

var serverName = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9.-]|_[A-Za-z0-9.-])*$`)

// CheckName checks the name of a server. It returns an error if, with this name, rules could not
// distinguish the tools of two servers.
func CheckName(name string) error {
	if !serverName.MatchString(name) || len(name) > 100 {
		return fmt.Errorf("%q cannot name an MCP server in rules: use 1 to 100 letters, digits, . and -, and single _ between them", name)
	}
	return nil
}

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

// call is a tools/call without a decision. It gets only one answer, because a goroutine must remove the call
// from gate.open before it answers the call or sends it to the server.
type call struct {
	id       json.RawMessage
	key      string
	tool     string
	params   map[string]json.RawMessage
	progress json.RawMessage // the client's progress token; nil if the client wants no notifications
	ctx      context.Context
	stop     context.CancelCauseFunc
}

// callFields are the parameters of tools/call in all versions of the protocol. The gate refuses a call with
// other parameters, because people would not see them.
var callFields = []string{"name", "arguments", "_meta", "task", "inputResponses", "requestState"}

// readCall reads the parameters of a tools/call. Its errors are for the client.
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

// line returns the message for the server, with the arguments that were allowed.
func (c *call) line(allowed json.RawMessage) ([]byte, error) {
	if _, there := c.params["arguments"]; there || string(allowed) != "{}" {
		c.params["arguments"] = allowed
	}
	line, err := encode(envelope{ID: c.id, Method: methodCall, Params: c.params})
	return oneLine(line), err
}

// judge starts to ask nod about a call. It drops a call without an id, because the protocol has no response
// to such a message, and nod could not refuse the call.
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
	stopProgress() // stop first, because no progress notification may follow the response
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

// take removes a call from the open calls and returns true. Only the caller that gets true may answer the
// call, or send it to the server. take returns false if the call is over. If toServer is true, the gate then
// accepts the server's response to the call.
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

// acceptChange asks a person about a tool whose definition has changed since nod last allowed a call of the
// tool. No rule answers this question. acceptChange returns the reason for a denial, or "".
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
			return g.acceptChange(c) // check again, because the tool may have changed while the person decided
		}
	}
	why := "The tool has changed since it was last allowed, and the change was not accepted."
	if err != nil {
		return why + " " + err.Error()
	}
	return why + " " + agents.DescribeDecision(&r, &d).Text
}

// timeoutWords occur in the reason that a client gives if its own time limit ended the call. After any other
// reason, such as a user who pressed Esc, nod's question ends too.
var timeoutWords = lazyregexp.New(`(?i)time(d)?[ -]?out|deadline`)

// cancel ends the call that the client cancelled, and returns true. It returns false if the server has the
// call already, or if the cancelled request is no call. The caller must then pass the cancellation to the
// server.
func (g *gate) cancel(m message) bool {
	fields, _ := members(m.params)
	var reason string
	_ = json.Unmarshal(fields["reason"], &reason) // treat a reason that is not a text as unknown
	cause := errCancelled
	if timeoutWords.MatchString(reason) {
		cause = errTimedOut
	}
	g.sending.Lock()
	defer g.sending.Unlock()
	return g.end(relay.IDKey(fields["requestId"]), cause) != nil
}

// end ends the open call with this id key and returns it. It returns nil if there is no such call.
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

// refuseReused refuses the request m if another request with the same id has no response yet, because the
// client could confuse the two responses. If that other request is a call without a decision, it refuses the
// call too. It returns false if there is no other request.
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

// If the client wants progress notifications, keepAlive sends them until the caller calls stop. It sends the
// first after firstProgress, so that a call that a rule decides gets none. The progress in them stays far
// below 1, so that the server's own progress is higher.
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

// CheckName returns an error if, with this name of a server, tools of two servers could have the same name in
// rules.
func CheckName(name string) error {
	if !serverName.MatchString(name) || len(name) > 100 {
		return fmt.Errorf("%q cannot name an MCP server in rules: use 1 to 100 letters, digits, . and -, and single _ between them", name)
	}
	return nil
}

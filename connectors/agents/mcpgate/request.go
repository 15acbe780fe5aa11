package mcpgate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// describe returns a request with the fields that all requests about a call share.
func (g *gate) describe(c *call) schemas.Request {
	g.mu.Lock()
	client := g.client
	g.mu.Unlock()
	r := schemas.Request{
		Type: schemas.TypeRequest, SessionID: g.opts.Session, PendingID: agents.NewID(),
		AgentName: "an MCP client", Host: g.opts.Host, User: g.opts.User, Project: g.opts.Project,
		CreatedAt: time.Now().UTC(),
	}
	if client != "" && utf8.RuneCountInString(client) <= agents.MaxLabel {
		r.AgentName = client
	}
	if r.Project != "" {
		r.SessionLabel = filepath.Base(r.Project)
	}
	return r
}

// maxReason is the limit of the field reason in the JSON Schema of a request, in characters.
const maxReason = 16384

// request returns the request for nod about a call. Its digest covers the arguments that the server will
// get, and the other parameters that the method beside returns.
func (g *gate) request(c *call) (r schemas.Request, err error) {
	r = g.describe(c)
	r.Kind, r.ActionType, r.ToolName = schemas.KindToolCall, schemas.ActionMCPTool, "mcp__"+g.opts.Name+"__"+c.tool
	r.Title, r.Options, r.Reason = agents.Title(r.ActionType), schemas.DefaultOptions(), g.reason(c)
	r.ActionDetails, err = c.details()
	return r, err
}

// reason returns a text for people: what the server claims about the tool, which proves nothing, and
// the requests that the server has made to the client.
func (g *gate) reason(c *call) string {
	d, listed, _, _ := g.tools.find(c.tool)
	text := "The server " + g.opts.Server + " did not list this tool to the client."
	if listed {
		text = d.claims() + " The server is " + g.opts.Server + "."
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, of := range []struct{ method, what string }{
		{methodSampling, "has its own requests answered by the client's model"},
		{methodElicit, "asks the client's user questions of its own"},
	} {
		if n := g.asked[of.method]; n > 0 {
			text += fmt.Sprintf(" The server also %s (%s, %d so far).", of.what, of.method, n)
			if words := g.words[of.method]; words != "" {
				text += fmt.Sprintf(" Its last words there: %q.", words)
			}
		}
	}
	if all := []rune(strings.ToValidUTF8(text, "�")); len(all) > maxReason {
		return string(all[:maxReason-1]) + "…"
	}
	return text
}

// ask sends r to nod, and returns the decision. If it gets no decision, it withdraws r. If the client's
// own time limit ended the call, it detaches r instead, so that a person can still allow the next
// identical call.
func (g *gate) ask(c *call, r schemas.Request) (d schemas.Decision, err error) {
	// The record of this process ends before the server gets the call. If this process is killed later,
	// nod therefore does not claim that the call never ran.
	defer g.opts.Waits.Register(&r, func(err error) {
		g.opts.Log.Warn("mcp gate: if this program is killed, a question stays open until its deadline", "id", r.PendingID, "error", err)
	})()
	open := true
	defer func() {
		if open {
			g.leave(c, r)
		}
	}()
	d, err = g.nod.Ask(c.ctx, r)
	open = err != nil && agents.MayBeOpen(err)
	var refused *schemas.Error
	switch {
	case err == nil:
	case c.ctx.Err() != nil:
		err = context.Cause(c.ctx)
	case errors.As(err, &refused):
		err = errors.New(agents.DescribeError(refused).Text)
	}
	return d, err
}

func (g *gate) leave(c *call, r schemas.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), withdrawWithin)
	defer cancel()
	cause := context.Cause(c.ctx)
	reason := "nod could not be asked"
	if cause != nil {
		reason = cause.Error()
	}
	how := g.nod.Withdraw
	if errors.Is(cause, errTimedOut) && r.Kind == schemas.KindToolCall {
		how = g.nod.Detach
	}
	if err := how(ctx, r.SessionID, r.PendingID, reason); err != nil {
		g.opts.Log.Warn("mcp gate: a question could not be withdrawn; it ends at its deadline", "session", r.SessionID, "id", r.PendingID, "error", err)
	}
}

package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// parseArguments parses arguments that an agent wrote. An unknown argument is an error, because the
// agent may have meant it as a restriction.
func parseArguments(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if !agents.IsObject(raw) {
		return errors.New("the arguments are not a JSON object")
	}
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("read the arguments: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

type permissionArgs struct {
	Permission  string   `json:"permission"`
	Permissions []string `json:"permissions"`
	Reason      string   `json:"reason"`
	Agent       string   `json:"agent_id"`
	AgentID     string   `json:"agentId"` // another spelling that is accepted for agent_id
	Minutes     *float64 `json:"timeout_minutes"`
	Wait        *bool    `json:"wait"`
}

func (w *permissionArgs) parse(raw json.RawMessage) error {
	if err := parseArguments(raw, w); err != nil {
		return err
	}
	if w.Minutes != nil && !(*w.Minutes >= 1 && *w.Minutes <= 60) {
		return errors.New("timeout_minutes must be 1 to 60")
	}
	if w.Agent != "" && w.AgentID != "" && w.Agent != w.AgentID {
		return errors.New("agent_id and agentId name different sessions")
	}
	w.Agent = cmp.Or(w.Agent, w.AgentID)
	if w.Permission != "" && !slices.Contains(w.Permissions, w.Permission) {
		w.Permissions = slices.Insert(w.Permissions, 0, w.Permission)
	}
	return nil
}

// requestPermission asks nod for permissions of a session. nod may ask a person. A denial is a normal
// result. If the request times out or nod refuses it, the result is marked as an error.
func (c *call) requestPermission(ctx context.Context) *mcp.CallToolResult {
	var args permissionArgs
	if err := args.parse(c.Params.Arguments); err != nil {
		return failed(err)
	}
	r := c.request()
	r.PendingID, r.Kind, r.Title = agents.NewID(), schemas.KindPermission, "Permission request"
	r.Reason, r.ActionType, r.ActionDetails = args.Reason, schemas.ActionOther, json.RawMessage("{}")
	r.Permissions = args.Permissions // nod checks whether fields are missing
	if args.Agent != "" {
		details, err := schemas.Encode(map[string]string{"agent_id": args.Agent})
		if err != nil {
			return failed(err)
		}
		r.ActionDetails = details
	}
	if args.Minutes != nil {
		r.TimeoutSeconds = int(*args.Minutes * 60)
	}
	if args.Wait != nil && !*args.Wait {
		return c.askWithoutWaiting(ctx, r)
	}
	d, err := c.ask(ctx, &r)
	if err != nil {
		return failed(err)
	}
	return decisionResult(&r, &d)
}

// grantPermission grants another session a permission of this session.
func (c *call) grantPermission(ctx context.Context) *mcp.CallToolResult {
	var args struct {
		Agent      string `json:"agentId"`
		Permission string `json:"permission"`
		Reason     string `json:"reason"`
	}
	if err := parseArguments(c.Params.Arguments, &args); err != nil {
		return failed(err)
	}
	s := schemas.Share{Type: schemas.TypeShare, SessionID: c.session, AgentID: args.Agent, Reason: args.Reason}
	if args.Permission != "" {
		s.Permissions = []string{args.Permission}
	}
	ctx, done := c.withReadTimeout(ctx)
	defer done()
	if _, err := c.server.nod.Share(ctx, s); err != nil {
		return failed(err)
	}
	return text("Permission granted to agent " + args.Agent + ".")
}

func (c *call) listPermissions(ctx context.Context) *mcp.CallToolResult {
	if err := parseArguments(c.Params.Arguments, &struct{}{}); err != nil {
		return failed(err)
	}
	ctx, done := c.withReadTimeout(ctx)
	defer done()
	s, err := c.server.nod.Session(ctx, c.session)
	if err != nil {
		return failed(err)
	}
	h := permissionsOf(c.session, &s)
	result := text(h.String())
	result.StructuredContent = h
	return result
}

// withReadTimeout returns the context of a call that does not wait for a person. The context ends after
// readWithin, when the client is gone, or when the server stops.
func (c *call) withReadTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, done := c.untilGone(ctx)
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	return ctx, func() { cancel(); done() }
}

type permissionList struct {
	Session string `json:"session_id"`
	// If Managed is true, the session may use only the files and hosts in Permissions and Granted.
	Managed     bool     `json:"managed"`
	Permissions []string `json:"permissions"` // permission tags, such as @network
	Granted     []grant  `json:"granted"`     // further permissions from grants
}

type grant struct {
	What  string    `json:"what"`
	Until time.Time `json:"until,omitzero"` // the end of the grant; zero if it does not end by itself
}

func permissionsOf(session string, s *schemas.Session) permissionList {
	h := permissionList{Session: session, Managed: s.Permissions != nil, Permissions: []string{}, Granted: []grant{}}
	if set := s.Permissions; set != nil {
		if set.WorkingDir != "" {
			h.Permissions = append(h.Permissions, "@write:"+set.WorkingDir)
		}
		for _, dir := range set.WriteDirs {
			h.Permissions = append(h.Permissions, "@write:"+dir)
		}
		for _, dir := range set.ReadDirs {
			h.Permissions = append(h.Permissions, "@read:"+dir)
		}
		if set.Network {
			h.Permissions = append(h.Permissions, "@network")
		}
	}
	for i := range s.Grants {
		h.Granted = append(h.Granted, grant{s.Grants[i].Reach(), s.Grants[i].ExpiresAt})
	}
	return h
}

// String returns the permissions as text for an agent.
func (h permissionList) String() string {
	lines := []string{"This session (" + h.Session + ") is not limited to a set of permissions: nod's rules decide about each call."}
	if h.Managed {
		lines[0] = "This session (" + h.Session + ") holds: " + strings.Join(append(h.Permissions, h.placeholder()...), ", ")
	}
	for _, g := range h.Granted {
		until := "until it is revoked"
		if !g.Until.IsZero() {
			until = "until " + g.Until.UTC().Format(time.RFC3339)
		}
		lines = append(lines, "Granted: "+g.What+" "+until)
	}
	return strings.Join(lines, "\n")
}

func (h permissionList) placeholder() []string {
	if len(h.Permissions) == 0 {
		return []string{"nothing"}
	}
	return nil
}

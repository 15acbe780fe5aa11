package rig

import (
	"fmt"

	"github.com/nodbus/nod/schemas"
)

// Deploy returns a tool call that no rule decides.
func Deploy(session, id string) schemas.Request { return Call("Deploy", session, id) }

// Lookup returns a tool call that a rule of Everybody allows.
func Lookup(session, id string) schemas.Request { return Call("Lookup", session, id) }

// Call returns a call of a tool.
func Call(tool, session, id string) schemas.Request {
	return schemas.Request{
		SessionID: session, PendingID: id, Kind: schemas.KindToolCall, Title: "Use " + tool, ToolName: tool,
		ActionType: schemas.ActionOther, ActionDetails: []byte(`{"to":"production"}`),
		Options: schemas.DefaultOptions(),
	}
}

// Shell returns a call of a shell command in a project. A person can also allow later calls of the same kind.
func Shell(session, id, command string) schemas.Request {
	r := Call("Bash", session, id)
	r.ActionType, r.Project = schemas.ActionCommand, "/app"
	r.ActionDetails = fmt.Appendf(nil, `{"command":%q,"cwd":"/app"}`, command)
	return r
}

// Permission returns a request for permissions on devbox, the engine's host.
func Permission(session, id, reason string, tags ...string) schemas.Request {
	return schemas.Request{
		SessionID: session, PendingID: id, Kind: schemas.KindPermission, Title: "Permission request", ActionType: schemas.ActionOther,
		ActionDetails: []byte("{}"), Permissions: tags, Reason: reason, Host: "devbox",
	}
}

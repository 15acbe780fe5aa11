package codex

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// The methods of the approval requests that nod decides.
const (
	commandApproval = "item/commandExecution/requestApproval"
	fileApproval    = "item/fileChange/requestApproval"
)

const sessionOption = "codex_session"

func isApproval(method string) bool { return method == commandApproval || method == fileApproval }

// item is a set of file changes that Codex has reported as started.
type item struct {
	turn    string          // the id of the turn
	changes json.RawMessage // each file's change, as Codex reported it
}

func itemKey(params map[string]json.RawMessage, id string) string {
	return text(params["threadId"]) + "\x00" + id
}

// itemStarted stores the file changes of an item, because Codex's later approval request for the item
// does not repeat them.
func (s *sidecar) itemStarted(params map[string]json.RawMessage) {
	it := object(params["item"])
	if text(it["type"]) != "fileChange" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	agents.PutBounded(s.items, itemKey(params, text(it["id"])), item{turn: text(params["turnId"]), changes: it["changes"]})
}

// itemCompleted deletes a completed item and withdraws its pending approval requests.
func (s *sidecar) itemCompleted(params map[string]json.RawMessage) {
	id := text(object(params["item"])["id"])
	s.mu.Lock()
	delete(s.items, itemKey(params, id))
	s.mu.Unlock()
	s.endMatching(errResolved, func(a *ask) bool {
		return itemKey(a.params, text(a.params["itemId"])) == itemKey(params, id)
	})
}

func (s *sidecar) turnCompleted(params map[string]json.RawMessage) {
	turn := text(object(params["turn"])["id"])
	s.mu.Lock()
	for key, it := range s.items {
		if it.turn == turn {
			delete(s.items, key)
		}
	}
	s.mu.Unlock()
	s.endMatching(errResolved, func(a *ask) bool {
		return text(a.params["threadId"]) == text(params["threadId"]) && text(a.params["turnId"]) == turn
	})
}

// request converts an approval request of Codex to a request for nod. It returns an error if the
// approval request lacks data that a person must see.
func (s *sidecar) request(a *ask) (*schemas.Request, error) {
	thread := text(a.params["threadId"])
	if thread == "" || text(a.params["itemId"]) == "" {
		return nil, errors.New("an approval names no thread or item")
	}
	r := &schemas.Request{
		Type: schemas.TypeRequest, Kind: schemas.KindToolCall,
		SessionID: agents.ID(thread), PendingID: agents.NewID(), ToolCallID: text(a.params["itemId"]),
		Reason: text(a.params["reason"]), AgentName: "Codex", Host: s.opts.Host, User: s.opts.User,
		Project: s.dirOf(thread), Options: schemas.DefaultOptions(), CreatedAt: time.Now().UTC(),
	}
	if r.Project != "" {
		r.SessionLabel = filepath.Base(r.Project)
	}
	if offers(a.params["availableDecisions"], acceptForSession) {
		r.Options = append(r.Options, schemas.Option{
			OptionID: sessionOption, Name: "Allow for this session (Codex remembers it; nod cannot revoke it)", Kind: schemas.AllowAlways,
		})
	}
	if a.method == fileApproval {
		return r, s.fileChange(a, r)
	}
	return r, command(a, r)
}

const unruledTool = "codex_approval"

// command fills in r for an approval request for a command. If Codex asks for exactly one command in a
// known project, r becomes a call of Bash, which rules may decide. Otherwise r contains all fields of
// the approval request and has a tool name that no rule matches, so that nod asks a person.
func command(a *ask, r *schemas.Request) (err error) {
	r.Title, r.ToolName, r.ActionType = "Command Execution Approval", "Bash", schemas.ActionCommand
	src, cwd := text(a.params["command"]), text(a.params["cwd"])
	plain := src != "" && cwd != "" && r.Project != "" && isDefault(a.params["kind"], "command") && isDefault(a.params["environmentId"], "local") &&
		absent(a.params["networkApprovalContext"]) && absent(a.params["additionalPermissions"])
	if plain {
		r.ActionDetails, err = schemas.Encode(map[string]string{"command": script(src), "cwd": cwd})
		return err
	}
	r.Title, r.ToolName, r.ActionType, r.ActionDetails = "Codex Approval", unruledTool, schemas.ActionOther, a.raw
	return nil
}

// shellWrapper matches the shell by which Codex runs each command, if the command is one argument
// in single quotes or without quotes. One of its two groups contains the command.
var shellWrapper = lazyregexp.New(`^(?:/usr)?/bin/(?:ba|z)sh -l?c (?:'([^']+)'|([A-Za-z0-9_./+-]+))$`)

// script returns a command without the shell with which Codex runs it. If shellWrapper does not match,
// script returns the whole text, so that nod asks a person.
func script(command string) string {
	if found := shellWrapper.FindStringSubmatch(command); found != nil {
		return found[1] + found[2]
	}
	return command
}

// fileChange fills in r for an approval request for file changes. r contains the changes that Codex
// has reported. If Codex has reported no changes, fileChange returns an error. If the project and so
// its rules are unknown, r has a tool name that no rule matches, so that nod asks a person.
func (s *sidecar) fileChange(a *ask, r *schemas.Request) (err error) {
	s.mu.Lock()
	it, known := s.items[itemKey(a.params, r.ToolCallID)]
	s.mu.Unlock()
	var changes []json.RawMessage
	if !known || json.Unmarshal(it.changes, &changes) != nil || len(changes) == 0 {
		return errors.New("an approval of file changes that Codex has not reported")
	}
	r.Title, r.ToolName, r.ActionType = "File Write Approval", "apply_patch", schemas.ActionFileWrite
	if r.Project == "" {
		r.ToolName = unruledTool
	}
	details := map[string]json.RawMessage{"changes": it.changes}
	if root := a.params["grantRoot"]; !absent(root) {
		details["grantRoot"] = root
	}
	r.ActionDetails, err = schemas.Encode(details)
	return err
}

// offers reports whether raw, the list of decisions in an approval request, contains d. Without a
// list, Codex accepts its default decisions. They include every decision that nod sends.
func offers(raw json.RawMessage, d decision) bool {
	var all []json.RawMessage
	if absent(raw) {
		return true
	}
	return json.Unmarshal(raw, &all) == nil && slices.ContainsFunc(all, func(one json.RawMessage) bool { return text(one) == string(d) })
}

// isDefault reports whether a field is missing, is null, or has its usual value mostly.
func isDefault(raw json.RawMessage, mostly string) bool { return absent(raw) || text(raw) == mostly }

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// object returns the members of a JSON object by their exact names, or nil for any other
// value.
func object(raw []byte) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

// text returns a JSON string's value, or "" for any other value.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // after an error, the result is ""
	return s
}

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

// item is a set of file changes that Codex has started.
type item struct {
	turn    string          // the id of the turn
	changes json.RawMessage // each file's change, as Codex reported it
}

func itemKey(params map[string]json.RawMessage, id string) string {
	return text(params["threadId"]) + "\x00" + id
}

// itemStarted stores the file changes of an item. Codex sends the approval request for the item later,
// without the changes.
func (s *sidecar) itemStarted(params map[string]json.RawMessage) {
	it := object(params["item"])
	if text(it["type"]) != "fileChange" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	agents.PutBounded(s.items, itemKey(params, text(it["id"])), item{turn: text(params["turnId"]), changes: it["changes"]})
}

// itemCompleted removes a completed item, and withdraws the item's pending approval requests.
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

// command adds the content of an approval request for a command to r. If Codex asks for exactly one
// command in a known project, r is a call of Bash, which rules may decide. Otherwise r contains all
// fields of the approval request, and the name of its tool matches no rule, so that nod asks a person.
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

// shellWrapper matches the shell by which Codex runs a command. The command must be one argument, in
// single quotes or without quotes. One of the two groups of the match is the command.
var shellWrapper = lazyregexp.New(`^(?:/usr)?/bin/(?:ba|z)sh -l?c (?:'([^']+)'|([A-Za-z0-9_./+-]+))$`)

// script returns a command without the shell by which Codex runs it. If shellWrapper does not match,
// script returns the whole text. nod then asks a person.
func script(command string) string {
	if found := shellWrapper.FindStringSubmatch(command); found != nil {
		return found[1] + found[2]
	}
	return command
}

// fileChange adds to r the file changes that Codex has reported for an approval request. If Codex has
// reported none, fileChange returns an error. If the project is unknown, its rules are unknown too. The
// tool name of r then matches no rule, so that nod asks a person.
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

// offers reports whether Codex accepts the decision d. raw is the list of decisions in the approval
// request. Without a list, Codex accepts all decisions that the sidecar sends.
func offers(raw json.RawMessage, d decision) bool {
	var all []json.RawMessage
	if absent(raw) {
		return true
	}
	return json.Unmarshal(raw, &all) == nil && slices.ContainsFunc(all, func(one json.RawMessage) bool { return text(one) == string(d) })
}

// isDefault reports whether a field is missing, is null, or is the string usual.
func isDefault(raw json.RawMessage, usual string) bool { return absent(raw) || text(raw) == usual }

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

package codex

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// The approvals that go to nod.
const (
	commandApproval = "item/commandExecution/requestApproval"
	fileApproval    = "item/fileChange/requestApproval"
)

// sessionOption is Codex's own "for this session".
const sessionOption = "codex_session"

func isApproval(method string) bool { return method == commandApproval || method == fileApproval }

// item is what Codex has begun to do.
type item struct {
	turn    string
	changes json.RawMessage // of files
}

func itemKey(params map[string]json.RawMessage, id string) string {
	return text(params["threadId"]) + "\x00" + id
}

// begun remembers the changes of files: their approval does not name them.
func (s *sidecar) itemStarted(params map[string]json.RawMessage) {
	it := object(params["item"])
	if text(it["type"]) != "fileChange" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[itemKey(params, text(it["id"]))] = item{turn: text(params["turnId"]), changes: it["changes"]}
}

// over ends what an item was asked for that is complete.
func (s *sidecar) itemCompleted(params map[string]json.RawMessage) {
	id := text(object(params["item"])["id"])
	s.mu.Lock()
	delete(s.items, itemKey(params, id))
	s.mu.Unlock()
	s.endMatching(errResolved, func(a *ask) bool {
		return itemKey(a.params, text(a.params["itemId"])) == itemKey(params, id)
	})
}

// turnOver ends what a turn was asked for.
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

// request is what nod is asked. It fails on what could not be shown whole.
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

// command asks about a shell command where it is nothing else, in a thread whose
// project is known. What it may want beside running, a person is shown whole, in
// fields that no rule knows.
func command(a *ask, r *schemas.Request) (err error) {
	r.Title, r.ToolName, r.ActionType = "Command Execution Approval", "Bash", schemas.ActionCommand
	src, cwd := text(a.params["command"]), text(a.params["cwd"])
	plain := src != "" && cwd != "" && r.Project != "" && isDefault(a.params["kind"], "command") && isDefault(a.params["environmentId"], "local") &&
		absent(a.params["networkApprovalContext"]) && absent(a.params["additionalPermissions"])
	if plain {
		r.ActionDetails, err = schemas.Encode(map[string]string{"command": script(src), "cwd": cwd})
		return err
	}
	r.Title, r.ToolName, r.ActionType, r.ActionDetails = "Codex Approval", "codex_approval", schemas.ActionOther, a.raw
	return nil
}

// shellWrapper is the shell that Codex runs each command by, and one word.
var shellWrapper = regexp.MustCompile(`^(?:/usr)?/bin/(?:ba|z)sh -l?c (?:'([^']+)'|([A-Za-z0-9_./+-]+))$`)

// script is what runs, without the shell that Codex puts around it. What is
// quoted in a less plain way stays whole, which asks a person.
func script(command string) string {
	if found := shellWrapper.FindStringSubmatch(command); found != nil {
		return found[1] + found[2]
	}
	return command
}

// fileChange asks about the changes that Codex said it begins.
func (s *sidecar) fileChange(a *ask, r *schemas.Request) (err error) {
	s.mu.Lock()
	it, known := s.items[itemKey(a.params, r.ToolCallID)]
	s.mu.Unlock()
	var changes []json.RawMessage
	if !known || json.Unmarshal(it.changes, &changes) != nil || len(changes) == 0 {
		return errors.New("an approval of file changes that Codex did not name before")
	}
	r.Title, r.ToolName, r.ActionType = "File Write Approval", "apply_patch", schemas.ActionFileWrite
	details := map[string]json.RawMessage{"changes": it.changes}
	if root := a.params["grantRoot"]; !absent(root) {
		details["grantRoot"] = root
	}
	r.ActionDetails, err = schemas.Encode(details)
	return err
}

// offers reports whether a list of decisions has this one. Codex names none where
// the usual ones hold.
func offers(raw json.RawMessage, d decision) bool {
	var all []json.RawMessage
	if absent(raw) {
		return true
	}
	return json.Unmarshal(raw, &all) == nil && slices.ContainsFunc(all, func(one json.RawMessage) bool { return text(one) == string(d) })
}

// usual reports whether a field says what it says mostly, or is not there.
func isDefault(raw json.RawMessage, mostly string) bool { return absent(raw) || text(raw) == mostly }

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// object is a JSON object's members by their exact names; nil for anything else.
func object(raw []byte) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

// text is a JSON string; "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // it stays ""
	return s
}

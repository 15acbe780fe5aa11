package hook

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// maxRolloutLine is the largest length, in bytes, of a line in a rollout, which is Codex's log of a
// session. If a line is longer, the directory of the call counts as unknown.
const maxRolloutLine = 16 << 20

// rolloutItem is a line of Codex's rollout that may contain a call of a shell.
type rolloutItem struct {
	Type    string `json:"type"`
	Payload struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Arguments string `json:"arguments"` // a JSON object
		Action    struct {
			Command          json.RawMessage `json:"command"`
			WorkingDirectory string          `json:"working_directory"`
		} `json:"action"`
	} `json:"payload"`
}

// commandDir returns the directory in which Codex runs the command of the call. The hook input contains
// only the session's directory, but the model may choose another one, which only the rollout contains.
// known is false if the rollout does not contain the call, or if it contains the command with different
// directories.
func (c *Call) commandDir() (dir string, known bool) {
	f, err := os.Open(c.Transcript)
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }() // the error does not matter, because the file is open only for reading
	command := commandText(c.Input)
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxRolloutLine)
	for lines.Scan() {
		id, at, ran, isCall := rolloutCall(lines.Bytes())
		switch {
		case !isCall || c.ToolCallID != "" && id != c.ToolCallID || ran != command || command == "":
			continue
		case at == "":
			at = c.Cwd
		case !filepath.IsAbs(at):
			at = filepath.Join(c.Cwd, at)
		}
		if known && at != dir {
			return "", false
		}
		dir, known = at, true
	}
	return dir, known && lines.Err() == nil
}

// codexByUser reports whether Codex's user wrote the prompt of a turn in a terminal, according to a
// rollout. Codex exec, editors and other programs also start turns, but they wait for the end themselves.
func codexByUser(rollout, turnID string) bool {
	f, err := os.Open(rollout)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // the error does not matter, because the file is open only for reading
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxRolloutLine)
	terminal, byUser := false, false
	for lines.Scan() {
		var l struct {
			Type    string `json:"type"`
			Payload struct {
				Type        string `json:"type"`
				Originator  string `json:"originator"`
				Attribution struct {
					TurnID  string `json:"turn_id"`
					Trigger string `json:"turn_trigger"`
				} `json:"turn_attribution"`
			} `json:"payload"`
		}
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			continue
		}
		switch {
		case l.Type == "session_meta":
			terminal = l.Payload.Originator == "codex-tui"
		case l.Type == "event_msg" && l.Payload.Type == "task_started" && l.Payload.Attribution.TurnID == turnID:
			byUser = l.Payload.Attribution.Trigger == "user"
		}
	}
	return terminal && byUser && turnID != "" && lines.Err() == nil
}

// rolloutCall returns the id, the directory and the command of a call of a shell, if the line of the
// rollout contains one.
func rolloutCall(line []byte) (id, dir, command string, isCall bool) {
	var item rolloutItem
	if json.Unmarshal(line, &item) != nil || item.Type != "response_item" {
		return "", "", "", false
	}
	switch p := item.Payload; p.Type {
	case "function_call":
		var args struct {
			Workdir string `json:"workdir"`
		}
		if json.Unmarshal([]byte(p.Arguments), &args) != nil {
			return "", "", "", false
		}
		command = commandText(json.RawMessage(p.Arguments))
		return p.CallID, args.Workdir, command, command != ""
	case "local_shell_call":
		command = commandText(json.RawMessage(`{"command":` + string(p.Action.Command) + `}`))
		return p.CallID, p.Action.WorkingDirectory, command, command != ""
	}
	return "", "", "", false
}

// commandText returns the command line in the input of a shell tool. There it is either one text, or
// the list of arguments for a shell.
func commandText(input json.RawMessage) string {
	var in map[string]json.RawMessage
	if json.Unmarshal(input, &in) != nil {
		return ""
	}
	for _, key := range []string{"command", "cmd"} {
		var text string
		var words []string
		switch {
		case json.Unmarshal(in[key], &text) == nil && text != "":
			return text
		case json.Unmarshal(in[key], &words) == nil && len(words) == 3 && strings.HasSuffix(words[1], "c"):
			return words[2]
		case len(words) > 0:
			return strings.Join(words, " ")
		}
	}
	return ""
}

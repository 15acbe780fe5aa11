package hook

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// maxRolloutLine is the largest length, in bytes, of a line in a rollout, which is Codex's log of a
// session. If a line is longer, the rollout counts as unreadable.
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
// The result is "", for an unknown directory, if the rollout does not contain the call, contains the
// command with different directories, or cannot be read to its end.
func (c *Call) commandDir() string {
	command := commandText(c.Input)
	dir, known, differ := "", false, false
	complete := eachRolloutLine(c.Transcript, func(line []byte) {
		id, at, ran, isCall := rolloutCall(line)
		switch {
		case !isCall || c.ToolCallID != "" && id != c.ToolCallID || ran != command || command == "":
			return
		case at == "":
			at = c.Cwd
		case !filepath.IsAbs(at):
			at = filepath.Join(c.Cwd, at)
		}
		differ = differ || known && at != dir
		dir, known = at, true
	})
	if !complete || differ {
		return ""
	}
	return dir
}

// eachRolloutLine calls the function visit for each line of a rollout. It returns false if it could not
// read the whole rollout.
func eachRolloutLine(path string, visit func(line []byte)) (complete bool) {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // the error does not matter, because the file is open only for reading
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxRolloutLine)
	for lines.Scan() {
		visit(lines.Bytes())
	}
	return lines.Err() == nil
}

// codexByUser reports whether Codex's user wrote the prompt of a turn in a terminal, according to a
// rollout. Codex exec, editors and other programs also start turns, but they wait for the end themselves.
func codexByUser(rollout, turnID string) bool {
	terminal, byUser := false, false
	complete := eachRolloutLine(rollout, func(line []byte) {
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
		if json.Unmarshal(line, &l) != nil {
			return
		}
		switch {
		case l.Type == "session_meta":
			terminal = l.Payload.Originator == "codex-tui"
		case l.Type == "event_msg" && l.Payload.Type == "task_started" && l.Payload.Attribution.TurnID == turnID:
			byUser = l.Payload.Attribution.Trigger == "user"
		}
	})
	return complete && terminal && byUser && turnID != ""
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

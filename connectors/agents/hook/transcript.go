package hook

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
)

// Turn is a kind of turn. The host's transcript shows to which kind the turn of a call belongs.
type Turn int

// The kinds of turns. Only in an Alone turn may the hook tell the host to repeat the call later.
const (
	Unsure   Turn = iota // the transcript does not contain the whole turn
	Attended             // a user is at the terminal, so the host must not end its run
	Shared               // no user is at the terminal, and the model made other calls in the same message
	Alone                // no user is at the terminal, and the model made only this call
)

// claudeLine is a line of Claude Code's transcript: a prompt, a piece of the model's message, or the
// result of a call.
type claudeLine struct {
	PromptID     string `json:"promptId"`
	PromptSource string `json:"promptSource"`
	Entrypoint   string `json:"entrypoint"`
	Message      struct {
		ID         string          `json:"id"`
		StopReason string          `json:"stop_reason"` // the reason why the message ended; empty while the message is incomplete
		Content    json.RawMessage `json:"content"`
	} `json:"message"`
	Attachment struct {
		Type      string `json:"type"`
		ToolUseID string `json:"toolUseID"`
	} `json:"attachment"`
}

// claudeTurn returns the kind of the call's turn from the transcript that the hook input names. Claude
// Code repeats a deferred call only in an unattended run, and only if the model's message contains no
// other call. Otherwise it ignores "defer" and continues as without a hook. A run is unattended if its
// prompt came from the SDK, or if Claude Code itself wrote the prompt to resume an unattended run.
// Environment variables do not show this, because a nested run inherits them.
func claudeTurn(in claudeInput) Turn {
	lines, err := claudeLines(in.Transcript)
	if err != nil {
		return Unsure
	}
	turn, message := Unsure, ""
	calls := map[string]map[string]bool{} // the ids of the tool calls in each message, by message id
	unfinished := map[string]bool{}
	for _, l := range lines {
		switch ours := in.PromptID != "" && l.PromptID == in.PromptID; {
		case ours && l.unattended() && turn != Attended:
			turn = Shared
		case ours && l.PromptSource != "" && !l.unattended():
			turn = Attended
		case in.PromptID == "" && l.Attachment.Type == "hook_deferred_tool" && l.Attachment.ToolUseID == in.ToolUseID:
			turn = Shared // only an unattended run repeats calls, and the hook input of a repeated call has no prompt id
		}
		for _, id := range l.calls() {
			if calls[l.Message.ID] == nil {
				calls[l.Message.ID] = map[string]bool{}
			}
			calls[l.Message.ID][id] = true
			unfinished[l.Message.ID] = unfinished[l.Message.ID] || l.Message.StopReason == ""
			if id == in.ToolUseID {
				message = l.Message.ID
			}
		}
	}
	switch {
	case turn != Shared:
		return turn
	case message == "" || unfinished[message]:
		return Unsure
	case len(calls[message]) == 1:
		return Alone
	}
	return Shared
}

// claudePrompted returns a function that reports whether a prompt of the user waits, according to the
// transcript. Claude Code sends such a prompt after its hooks for the event Stop have ended.
func claudePrompted(path string) func() bool {
	read, waiting := int64(0), 0
	return func() bool {
		file, err := os.Open(path)
		if err != nil {
			return false
		}
		defer func() { _ = file.Close() }() // the error does not matter, because the file is open only for reading
		lines := bufio.NewReader(io.NewSectionReader(file, read, 1<<62))
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil { // the next call reads the rest of an unfinished line
				return waiting > 0
			}
			read += int64(len(line))
			waiting = queued(line, waiting)
		}
	}
}

// queued returns how many prompts wait after a line of the transcript, if the number before this line
// was waiting.
func queued(line []byte, waiting int) int {
	var l struct {
		Type      string `json:"type"`
		Operation string `json:"operation"`
	}
	if !bytes.Contains(line, []byte(`"queue-operation"`)) || json.Unmarshal(line, &l) != nil || l.Type != "queue-operation" {
		return waiting
	}
	switch l.Operation {
	case "enqueue":
		return waiting + 1
	case "popAll":
		return 0
	}
	return max(0, waiting-1) // the operation is dequeue or remove
}

// unattended reports whether the line is the prompt of an unattended run. Such a prompt comes from the
// SDK, or from Claude Code itself when it continues after a repeated call.
func (l *claudeLine) unattended() bool {
	return l.PromptSource == "sdk" || l.PromptSource == "system" && l.Entrypoint == "sdk-cli"
}

// calls returns the ids of the tool calls in a line.
func (l *claudeLine) calls() (ids []string) {
	var blocks []struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	}
	if json.Unmarshal(l.Message.Content, &blocks) != nil {
		return nil // the content is plain text, without tool calls
	}
	for _, b := range blocks {
		if b.Type == "tool_use" {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// claudeLines returns the lines of the transcript that claudeTurn needs. If it cannot parse one of them,
// or if the last line is not complete, it returns an error, because that line may be about this call.
func claudeLines(path string) (lines []claudeLine, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the error does not matter, because the file is open only for reading
	r := bufio.NewReader(file)
	for {
		raw, err := r.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, err
		}
		if len(raw) == 0 {
			return lines, nil
		}
		if err == io.EOF || bytes.Contains(raw, []byte(`"tool_use"`)) || bytes.Contains(raw, []byte(`"promptSource"`)) || bytes.Contains(raw, []byte(`"hook_deferred_tool"`)) {
			var l claudeLine
			if err := json.Unmarshal(raw, &l); err != nil {
				return nil, err
			}
			lines = append(lines, l)
		}
	}
}

package hook

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
)

// Turn is what a host's own records say of the turn that a call is in.
type Turn int

// The turns. Only of one that is Alone a host may be told to take it up later.
const (
	Unsure   Turn = iota // the records do not say, or not yet
	Attended             // somebody is at the host, which does not end
	Shared               // a run of its own, whose model made other calls beside this one
	Alone                // a run of its own, whose model made this call and no other
)

// A line of Claude Code's transcript: a prompt, a part of what the model said, or
// what became of a call.
type claudeLine struct {
	PromptID     string `json:"promptId"`
	PromptSource string `json:"promptSource"`
	Message      struct {
		ID         string          `json:"id"`
		StopReason string          `json:"stop_reason"` // empty until the model has said all
		Content    json.RawMessage `json:"content"`
	} `json:"message"`
	Attachment struct {
		Type      string `json:"type"`
		ToolUseID string `json:"toolUseID"`
	} `json:"attachment"`
}

// claudeTurn reads the transcript that in names. Claude Code takes a call up again
// where it runs by itself and the model's message holds no other call; elsewhere it
// passes over "defer" and goes on as if there were no hook. Its environment does not
// say which it is, as a run inside of another inherits that; the source of the prompt
// does.
func claudeTurn(in claudeInput) Turn {
	lines, err := claudeLines(in.Transcript)
	if err != nil {
		return Unsure
	}
	turn, message := Unsure, ""
	calls := map[string]map[string]bool{} // by message
	unfinished := map[string]bool{}
	for _, l := range lines {
		switch ours := in.PromptID != "" && l.PromptID == in.PromptID; {
		case ours && l.PromptSource == "sdk" && turn != Attended:
			turn = Shared
		case ours && l.PromptSource != "" && l.PromptSource != "sdk":
			turn = Attended
		case in.PromptID == "" && l.Attachment.Type == "hook_deferred_tool" && l.Attachment.ToolUseID == in.ToolUseID:
			turn = Shared // taken up again, which only a run of its own does
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

// calls are the ids of the calls that a line holds.
func (l *claudeLine) calls() (ids []string) {
	var blocks []struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	}
	if json.Unmarshal(l.Message.Content, &blocks) != nil {
		return nil // a plain text
	}
	for _, b := range blocks {
		if b.Type == "tool_use" {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// claudeLines are the lines of a transcript that claudeTurn needs. One that cannot
// be read is an error: it may be what is looked for, half written.
func claudeLines(path string) (lines []claudeLine, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
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

package hook

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"sync"
	"time"
)

// beforeTool is the hook event of Gemini CLI that nod answers. Nod installs no hook
// for BeforeAgent: if that hook fails, Gemini CLI accepts no prompt at all.
const beforeTool = "BeforeTool"

// Gemini describes Google's Gemini CLI. Its hook runs for every call, before
// Gemini's own policy; that policy still applies to a call that nod allows.
func Gemini() Host {
	return Host{
		Name:         "gemini",
		Agent:        "Gemini CLI",
		ChangesSince: "0.61.0",
		Dialect:      gemini{},
		Program:      "gemini",
		Tested:       []string{"0.61.0"},
		Setup: Setup{
			Dir: ".gemini", File: "settings.json", Comments: true,
			Events: []string{beforeTool}, Blocks: []string{beforeTool}, Signals: []string{sessionEnd}, Matcher: "*",
			Timeout: 24 * time.Hour, Unit: time.Millisecond,
			Note: "Gemini CLI may still ask by its own policy after nod allowed a call; every call is refused while nod does not run",
		},
	}
}

type gemini struct{}

func (gemini) Read(input []byte) (Call, error) {
	call, err := readProgram(Gemini(), input, []string{"ask_user", "exit_plan_mode"})
	if err == nil && !call.Signal {
		call.Stopped = geminiStopped(call.Transcript)
	}
	return call, err
}

// geminiStopped returns the function for Call.Stopped, or nil if there is no transcript.
// The function reports whether Gemini CLI has written to its transcript, since
// geminiStopped was called, that its user stopped it. Gemini CLI then lets the hook run
// on, but does not run a tool that the hook allows.
func geminiStopped(transcript string) func() bool {
	info, err := os.Stat(transcript)
	if err != nil {
		return nil
	}
	s := &stopSearch{path: transcript, from: info.Size()}
	return s.found
}

// stopSearch searches a growing transcript for the line of a stop. Each search reads on from
// the end of the last one. It is safe for concurrent use.
type stopSearch struct {
	path    string
	mu      sync.Mutex
	from    int64 // the start of the first line that was not yet complete
	stopped bool
}

// maxStopLine is more than the length, in bytes, of any line about a stop. Longer lines are
// skipped.
const maxStopLine = 64 << 10

// found reports whether the transcript has a line about a stop by now.
func (s *stopSearch) found() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return true
	}
	f, err := os.Open(s.path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // the file was opened only for reading, so closing it loses nothing
	if _, err := f.Seek(s.from, io.SeekStart); err != nil {
		return false
	}
	s.stopped = s.readOn(bufio.NewReaderSize(f, maxStopLine))
	return s.stopped
}

func (s *stopSearch) readOn(r *bufio.Reader) bool {
	var length int64 // the length of the line so far
	for {
		part, err := r.ReadSlice('\n')
		if whole := length == 0 && err != bufio.ErrBufferFull; whole && isGeminiStop(part) {
			return true
		}
		length += int64(len(part))
		switch err {
		case nil:
			s.from += length
			length = 0
		case bufio.ErrBufferFull: // the rest of a long line follows
		default:
			return false
		}
	}
}

func isGeminiStop(line []byte) bool {
	var l struct{ Type, Content string }
	return json.Unmarshal(line, &l) == nil && l.Type == "info" && l.Content == "Request cancelled."
}

// Reply refuses if the effect is AskHost: without a terminal Gemini CLI would wait
// forever for its user, and with --yolo an empty reply runs the tool.
func (gemini) Reply(c Call, v Verdict) ([]byte, int) {
	if v.Edited && !c.ChangesInput || dropsMember(c.Input, v.Input) { // Gemini CLI keeps a member that the change leaves out
		v = v.withoutEdits("Gemini CLI")
	}
	v = v.withReason()
	refusal := map[string]string{"decision": "deny", "reason": v.Reason}
	switch {
	case v.Effect == Leave:
		return []byte("{}"), 0
	case c.Event != beforeTool:
		return blockReply(refusal)
	case v.Effect == Allow && v.Edited:
		return jsonReply(map[string]any{"decision": "allow", "hookSpecificOutput": map[string]any{"hookEventName": beforeTool, "tool_input": v.Input}})
	case v.Effect == Allow:
		return jsonReply(map[string]string{"decision": "allow"})
	}
	return jsonReply(refusal)
}

// dropsMember reports whether a changed input lacks a member of the agent's input.
func dropsMember(input, changed json.RawMessage) bool {
	var was, is map[string]json.RawMessage
	if json.Unmarshal(input, &was) != nil || json.Unmarshal(changed, &is) != nil {
		return true
	}
	for name := range was {
		if _, kept := is[name]; !kept {
			return true
		}
	}
	return false
}

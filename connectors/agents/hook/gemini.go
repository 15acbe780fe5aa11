package hook

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"sync"
	"time"

	"github.com/nodbus/nod/schemas"
)

// The hook events of Gemini CLI that nod answers. beforeAgent comes after the user has written a prompt.
const (
	beforeTool  = "BeforeTool"
	afterTool   = "AfterTool"
	beforeAgent = "BeforeAgent"
)

// Gemini describes Google's Gemini CLI. Gemini CLI runs its hook for every call, before its own
// policy. Its policy still applies to a call that nod allows.
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
			Events: []string{beforeTool}, Blocks: []string{beforeTool}, Signals: []string{sessionEnd}, Newer: []string{beforeAgent, afterTool}, Matcher: "*",
			Notices: []string{beforeAgent, afterTool}, Ignored: []string{beforeAgent, afterTool}, // if the hook fails at these events, Gemini CLI accepts no prompt and no result of a tool
			Timeout: 24 * time.Hour, Unit: time.Millisecond,
			Note: "Gemini CLI may still ask by its own policy after nod allowed a call; every call is refused while nod does not run",
		},
	}
}

type gemini struct{}

// geminiTools are the tools of Gemini CLI that rules cover. In older versions, the tool of an MCP server
// has the name that the server uses, such as Bash. Such a tool must not count as another host's tool Bash.
var geminiTools = map[string]bool{
	"run_shell_command": true, "read_file": true, "read_many_files": true, "list_directory": true, "glob": true, "grep_search": true,
	"search_file_content": true, "write_file": true, "replace": true, "web_fetch": true, "google_web_search": true, "ask_user": true, "exit_plan_mode": true,
}

func (gemini) Read(input []byte) (Call, error) {
	call, _, err := readProgram(Gemini(), input, []string{"ask_user", "exit_plan_mode"})
	if err == nil && !call.Signal && !geminiTools[call.ToolName] {
		call.Action = schemas.ActionMCPTool
	}
	if err == nil && !call.Signal {
		call.Stopped = geminiStopped(call.Transcript)
	}
	return call, err
}

// geminiStopped returns a function for Call.Stopped, or nil if there is no transcript. The function
// reports whether the transcript contains a new line about a stop by the user. After a stop, Gemini CLI
// lets the hook continue, but does not run a tool that the hook allows.
func geminiStopped(transcript string) func() bool {
	info, err := os.Stat(transcript)
	if err != nil {
		return nil
	}
	s := &stopSearch{path: transcript, from: info.Size()}
	return s.found
}

// stopSearch searches a growing transcript for a line about a stop. Each search continues where the
// last one ended. stopSearch is safe for concurrent use.
type stopSearch struct {
	path    string
	mu      sync.Mutex
	from    int64 // the offset of the first line that is not complete
	stopped bool
}

// maxStopLine is a length in bytes. Every line about a stop is shorter, so that the search skips longer
// lines.
const maxStopLine = 64 << 10

// found reports whether the transcript contains a line about a stop.
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
	defer func() { _ = f.Close() }() // the error does not matter, because the file is open only for reading
	if _, err := f.Seek(s.from, io.SeekStart); err != nil {
		return false
	}
	s.stopped = s.readOn(bufio.NewReaderSize(f, maxStopLine))
	return s.stopped
}

func (s *stopSearch) readOn(r *bufio.Reader) bool {
	var length int64 // how many bytes of the present line have been read
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
		case bufio.ErrBufferFull: // the rest of the line follows, because the line is longer than the buffer
		default:
			return false
		}
	}
}

func isGeminiStop(line []byte) bool {
	var l struct{ Type, Content string }
	return json.Unmarshal(line, &l) == nil && l.Type == "info" && l.Content == "Request cancelled."
}

// Reply refuses the call if the effect is AskHost. The reply "ask" would make Gemini CLI without a
// terminal wait for ever, and with --yolo an empty reply would run the tool.
func (gemini) Reply(c Call, v Verdict) ([]byte, int) {
	if v.Effect == Leave {
		return claudeNotices(c, v.Notices)
	}
	if v.Edited && !c.ChangesInput || dropsMember(c.Input, v.Input) { // a member that only the agent's input has would stay, because Gemini CLI merges the two inputs
		v = v.withoutEdits("Gemini CLI")
	}
	v = v.withReason()
	refusal := map[string]string{"decision": "deny", "reason": v.Reason}
	switch {
	case c.Event != beforeTool:
		return blockReply(refusal)
	case v.Effect == Allow && v.Edited:
		return jsonReply(map[string]any{"decision": "allow", "hookSpecificOutput": map[string]any{"hookEventName": beforeTool, "tool_input": v.Input}})
	case v.Effect == Allow:
		return jsonReply(map[string]string{"decision": "allow"})
	}
	return jsonReply(refusal)
}

// dropsMember reports whether the agent's input has a member that the changed input lacks.
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

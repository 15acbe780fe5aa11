package codex

import (
	"encoding/json"

	"github.com/nodbus/nod/connectors/agents"
)

// threadResult stores the directory of a thread from Codex's response to a start, resume or fork of the
// thread. It ignores any other response.
func (s *sidecar) threadResult(result map[string]json.RawMessage) {
	s.setDir(text(object(result["thread"])["id"]), text(result["cwd"]))
}

// threadStarted stores the directory of a new thread. If the agent of another thread started the new
// one, it stores the directory of that other thread, so that both belong to one project.
func (s *sidecar) threadStarted(thread map[string]json.RawMessage) {
	dir := text(thread["cwd"])
	if parent := text(thread["parentThreadId"]); parent != "" {
		dir = s.dirOf(parent)
	}
	s.setDir(text(thread["id"]), dir)
}

// setDir stores the directory of a thread. For nod, it is the project, because the client chose it. The
// directory of a single command is not, because the model chooses it.
func (s *sidecar) setDir(thread, dir string) {
	if thread == "" || dir == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	agents.PutBounded(s.dirs, thread, dir)
}

// dirOf returns a thread's directory, or "" if Codex has not reported it.
func (s *sidecar) dirOf(thread string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dirs[thread]
}

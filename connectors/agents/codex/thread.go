package codex

import (
	"encoding/json"

	"github.com/nodbus/nod/connectors/agents"
)

// threadResult stores a thread's directory if result is Codex's response to a start, resume or fork of
// a thread. Other results lack a thread or a directory, and threadResult ignores them.
func (s *sidecar) threadResult(result map[string]json.RawMessage) {
	s.setDir(text(object(result["thread"])["id"]), text(result["cwd"]))
}

// threadStarted stores the directory of a new thread. If another thread's agent started the new thread,
// threadStarted stores the other thread's directory, so that both threads belong to one project.
func (s *sidecar) threadStarted(thread map[string]json.RawMessage) {
	dir := text(thread["cwd"])
	if parent := text(thread["parentThreadId"]); parent != "" {
		dir = s.dirOf(parent)
	}
	s.setDir(text(thread["id"]), dir)
}

// setDir stores a thread's directory, which nod uses as the project, because the client chose it. The
// directory of a single command is no project, because the model chooses it.
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

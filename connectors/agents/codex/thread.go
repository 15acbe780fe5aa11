package codex

import "encoding/json"

// threadResult stores a thread's directory from Codex's response to the start,
// resumption or fork of a thread. A response without a thread or a directory changes
// nothing.
func (s *sidecar) threadResult(result map[string]json.RawMessage) {
	s.setDir(text(object(result["thread"])["id"]), text(result["cwd"]))
}

// threadStarted stores the directory of a new thread. For a thread that an agent
// started for another agent it stores the parent's directory, so that both belong to
// one project.
func (s *sidecar) threadStarted(thread map[string]json.RawMessage) {
	dir := text(thread["cwd"])
	if parent := text(thread["parentThreadId"]); parent != "" {
		dir = s.dirOf(parent)
	}
	s.setDir(text(thread["id"]), dir)
}

// setDir stores a thread's directory, which its client chose. Rules and people see
// it as the project; the directory of a single command is the model's choice.
func (s *sidecar) setDir(thread, dir string) {
	if thread == "" || dir == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirs[thread] = dir
}

// dirOf returns a thread's directory; "" if Codex has not reported it.
func (s *sidecar) dirOf(thread string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dirs[thread]
}

package codex

import "encoding/json"

// threadResult handles a response of Codex. A thread that was started, resumed or
// forked names its directory there.
func (s *sidecar) threadResult(result map[string]json.RawMessage) {
	s.setDir(text(object(result["thread"])["id"]), text(result["cwd"]))
}

// threadStarted handles the start of a thread. A thread that an agent started for
// another agent belongs to its parent's project, whatever its own directory.
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

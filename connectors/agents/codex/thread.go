package codex

import "encoding/json"

// answered takes a response of Codex's: that a thread was started, resumed or
// forked says where it works.
func (s *sidecar) threadResult(result map[string]json.RawMessage) {
	s.setDir(text(object(result["thread"])["id"]), text(result["cwd"]))
}

// threadStarted takes the news of a thread. One that an agent started for another
// agent belongs to its own project, whatever directory it was given.
func (s *sidecar) threadStarted(thread map[string]json.RawMessage) {
	dir := text(thread["cwd"])
	if parent := text(thread["parentThreadId"]); parent != "" {
		dir = s.dirOf(parent)
	}
	s.setDir(text(thread["id"]), dir)
}

// worksIn remembers a thread's directory, which its client chose. It is the project
// that rules and people are told: where a command runs is the model's choice.
func (s *sidecar) setDir(thread, dir string) {
	if thread == "" || dir == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirs[thread] = dir
}

// dirOf is a thread's directory; "" where Codex has not said it.
func (s *sidecar) dirOf(thread string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dirs[thread]
}

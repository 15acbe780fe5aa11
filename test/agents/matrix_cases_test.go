//go:build linux

package agents_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// matrixCase is a column of the table in docs/agents.md. The function run runs the case and returns the text
// of its cell.
type matrixCase struct {
	name string
	run  func(s *scene) string
}

func matrixCases() []matrixCase {
	return []matrixCase{
		{"read", reads},
		{"allow", allows},
		{"deny with words", denies},
		{"host timeout", outlastsTheHost},
		{"nod timeout", timesOut},
		{"host killed", losesItsHost},
		{"hook killed", losesItsHook},
		{"nod off", findsNoNod},
		{"nod restarted", seesARestart},
		{"edit", edits},
		{"lasting answer", lasts},
		{"two at once", asksTwice},
	}
}

// The preset allows the agent to read one file, and a rule denies another file. The model gets only the
// content of the allowed file.
func reads(s *scene) string {
	s.applies(`{"permissions":{"deny":["Read(hidden.txt)"]}}`)
	for _, name := range []string{"plain", "hidden"} {
		require.NoError(s.t, os.WriteFile(filepath.Join(s.project, name+".txt"), []byte("these are "+name+" words\n"), 0o600))
	}
	r := s.begins([]call{s.read(filepath.Join(s.project, "plain.txt"))}, s.read(filepath.Join(s.project, "hidden.txt")))
	asked := false
	s.until("the turn is over", func() bool {
		for _, q := range s.pending() {
			asked = true
			s.does("allow", q.ID)
		}
		return r.over()
	})
	switch heard := s.model.heard(); {
	case strings.Contains(heard, "these are hidden words"):
		return "no: it asks nobody before it reads"
	case !strings.Contains(heard, "these are plain words"):
		return "no: the file was not read"
	case asked:
		return "no: a person is asked"
	}
	return "yes"
}

func allows(s *scene) string {
	r := s.begins([]call{s.shell(touch)})
	q := s.asksOnce(r)
	s.nothingRan()
	s.does("allow", q.ID)
	s.stops(r)
	return yes(s.left("ran") == "yes\n" && s.model.heard() != "", "it did not run")
}

func denies(s *scene) string {
	r := s.begins([]call{s.shell(touch)})
	s.does("deny", s.asksOnce(r).ID, "-m", "said by Ann")
	s.stops(r)
	s.nothingRan()
	if !strings.Contains(s.model.heard(), "said by Ann") {
		return "denied; words not carried"
	}
	return "yes"
}

// The agent's time limit for its hook is short, and no person answers.
func outlastsTheHost(s *scene) string {
	if !s.limited {
		return "not carried"
	}
	s.model.calls = []call{s.shell(touch)}
	s.rig.installs(s.machine, s.program)
	s.shortens()
	r := s.runs(s.machine, s.program)
	q := s.asksOnce(r)
	s.stops(r)
	s.nothingRan()
	open := s.pending()
	return yes(len(open) == 1 && open[0].ID == q.ID, "the question is withdrawn")
}

// The method shortens changes the time limit of the installed hook from one day to 20 s.
func (s *scene) shortens() {
	s.edited = true
	found := false
	err := filepath.WalkDir(s.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(path, filepath.Join(s.home, ".local")) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte("--host-timeout 86400s")) {
			return err
		}
		found = true
		return os.WriteFile(path, []byte(strings.NewReplacer("86400s", "20s", "86400000", "20000", "86400", "20").Replace(string(text))), 0o600)
	})
	require.NoError(s.t, err)
	require.True(s.t, found, "no settings have nod's hook")
}

func timesOut(s *scene) string {
	s.applies(`{"permissions":{"connected_timeout_seconds":3,"disconnected_timeout_seconds":3}}`)
	r := s.begins([]call{s.shell(touch)})
	s.asksOnce(r)
	s.until("the question is over", func() bool { return len(s.pending()) == 0 })
	end := time.Now().Add(20 * time.Second)
	s.until("the turn is over", func() bool { return r.over() || time.Now().After(end) })
	s.nothingRan()
	return yes(r.over(), "its own prompt stays")
}

func losesItsHost(s *scene) string {
	r := s.begins([]call{s.shell(touch)})
	s.asksOnce(r)
	for _, pid := range s.programs(r.pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // Kill fails if the process has ended together with its parent
	}
	return s.withdrawn(r)
}

func losesItsHook(s *scene) string {
	r := s.begins([]call{s.shell(touch)})
	s.asksOnce(r)
	require.NoError(s.t, syscall.Kill(r.asks(), syscall.SIGKILL))
	result := s.withdrawn(r)
	if s.stopsOrAsks(r) && result == "yes" {
		return "yes: its own prompt stays"
	}
	return result
}

// withdrawn requires that the call did not run. Its result says whether nod has withdrawn the agent's
// question after the agent stopped waiting.
func (s *scene) withdrawn(r *run) string {
	end := time.Now().Add(45 * time.Second) // nod tries for half a minute to reach a server that does not answer
	open := 1
	s.until("the question is withdrawn", func() bool {
		open = len(s.pending())
		return open == 0 || time.Now().After(end)
	})
	s.nothingRan()
	return yes(open == 0, "the question stays open until its deadline")
}

func findsNoNod(s *scene) string {
	s.model.calls = []call{s.shell(touch)}
	s.rig.installs(s.machine, s.program)
	s.killNod()
	alone := s.stopsOrAsks(s.runs(s.machine, s.program))
	s.nothingRan()
	if alone {
		return "yes: it asks its own user"
	}
	return yes(s.model.heard() != "", "the model is not told")
}

func seesARestart(s *scene) string {
	r := s.begins([]call{s.shell(touch)})
	q := s.asksOnce(r)
	s.killNod()
	s.nothingRan()
	s.startNod()
	s.does("allow", q.ID)
	s.stops(r)
	return yes(s.left("ran") == "yes\n", "it did not run")
}

func edits(s *scene) string {
	r := s.begins([]call{s.shell(touch)})
	q := s.asksOnce(r)
	_, taken := s.tries("allow", q.ID, "--input", strings.Replace(string(q.Details), "echo yes", "echo edited", 1))
	if !taken {
		s.does("deny", q.ID)
	}
	s.stops(r)
	assert.NotEqual(s.t, "yes\n", s.left("ran"), "the agent's input ran, and a person had changed it")
	if s.left("ran") == "edited\n" {
		return "yes"
	}
	return "not carried"
}

// A person allows a call with a standing answer. The same call then runs without a question.
func lasts(s *scene) string {
	require.NoError(s.t, os.WriteFile(filepath.Join(s.project, "Makefile"), []byte("leave:\n\t@echo yes >> ran\n"), 0o600))
	again := s.shell("make leave")
	r := s.begins([]call{again}, again)
	q := s.asksOnce(r)
	shown, _ := s.tries("allow", q.ID, "--always")
	_, rule, ok := strings.Cut(shown, "--rule '")
	if !ok {
		s.does("deny", q.ID)
		return "not carried"
	}
	rule, _, _ = strings.Cut(rule, "'")
	s.does("allow", q.ID, "--always", "--yes", "--rule", rule)
	asked := 0
	s.until("the turn is over", func() bool {
		for _, other := range s.pending() {
			if other.ID != q.ID {
				asked++
				s.does("deny", other.ID)
			}
		}
		return r.over()
	})
	return yes(asked == 0 && s.left("ran") == "yes\nyes\n", "the same call is asked again")
}

// The model makes two calls in one message. A person allows the second call and denies the first.
func asksTwice(s *scene) string {
	r := s.begins([]call{s.shell(touch), s.shell("echo two > two")})
	s.question(r, 1, patience)
	s.question(r, 2, 10*time.Second) // some agents ask about the second call only after the first call is decided
	together := len(s.pending())
	waits := time.Now().Add(10 * time.Second) // some agents run no call before all calls are decided
	s.until("the turn is over", func() bool {
		for _, q := range s.pending() {
			if strings.Contains(string(q.Details), "echo two") {
				s.does("allow", q.ID)
				return false
			}
		}
		for _, q := range s.pending() {
			if strings.Contains(string(q.Details), touch) && (together < 2 || s.left("two") != "" || time.Now().After(waits)) {
				_, _ = s.tries("deny", q.ID) // the command fails if the agent no longer waits for this call
			}
		}
		return r.over()
	})
	s.nothingRan()
	return yes(s.left("two") == "two\n", "a denial ends the turn with its other calls")
}

// programs returns a process and all processes below it, without those of nod.
func (s *scene) programs(root int) []int {
	all := []int{root}
	for i := 0; i < len(all); i++ {
		children, _ := filepath.Glob("/proc/" + strconv.Itoa(all[i]) + "/task/*/children")
		for _, path := range children {
			text, _ := os.ReadFile(path) // after its end, a process has no children
			for _, field := range strings.Fields(string(text)) {
				pid, err := strconv.Atoi(field)
				require.NoError(s.t, err)
				all = append(all, pid)
			}
		}
	}
	var others []int
	for _, pid := range all {
		if path, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); strings.TrimSuffix(path, " (deleted)") != s.nod {
			others = append(others, pid)
		}
	}
	return others
}

package codex

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/nodbus/nod/connectors/agents/hook"
)

// config is a config.toml that is changed by the line, since TOML libraries write
// files anew, without comments.
type config struct {
	lines  []string // each with its line break
	state  State
	before string
}

func parse(text string) (*config, error) {
	f := &config{before: text}
	if _, err := toml.Decode(text, &f.state); err != nil {
		return nil, err
	}
	if f.lines = strings.SplitAfter(text, "\n"); f.lines[len(f.lines)-1] == "" {
		f.lines = f.lines[:len(f.lines)-1]
	}
	return f, nil
}

// trust writes one hook's hash into its table, which may have to be made.
func (f *config) trust(path string, h hook.Installed, hash string) {
	says := fmt.Sprintf("trusted_hash = %q\n", hash)
	from, to, found := f.table(path, h)
	if !found {
		if n := len(f.lines); n > 0 && !strings.HasSuffix(f.lines[n-1], "\n") {
			f.lines[n-1] += "\n"
		}
		f.lines = append(f.lines, fmt.Sprintf("[hooks.state.%q]\n", path+place(h)), says)
		return
	}
	if at := f.hash(from, to); at >= 0 {
		f.lines[at] = hashLine.ReplaceAllLiteralString(f.lines[at], strings.TrimSuffix(says, "\n"))
		return
	}
	if !strings.HasSuffix(f.lines[from], "\n") {
		f.lines[from] += "\n"
	}
	f.lines = slices.Insert(f.lines, from+1, says)
}

// distrust removes one hook's hash, and its table where that says nothing else.
func (f *config) distrust(path string, h hook.Installed) {
	from, to, found := f.table(path, h)
	if !found {
		return
	}
	at := f.hash(from, to)
	if at < 0 {
		return
	}
	f.lines = slices.Delete(f.lines, at, at+1)
	more := slices.ContainsFunc(f.lines[from+1:to-1], func(line string) bool {
		line = strings.TrimSpace(line)
		return line != "" && line[0] != '#'
	})
	if !more {
		f.lines = slices.Delete(f.lines, from, from+1)
	}
}

// table is where a hook's table begins, and where the next one does.
func (f *config) table(path string, h hook.Installed) (from, to int, found bool) {
	from = slices.IndexFunc(f.lines, func(line string) bool {
		key, ok := stateKey(line)
		return ok && isOf(key, path, h)
	})
	if from < 0 {
		return 0, 0, false
	}
	for to = from + 1; to < len(f.lines) && !isHeader(f.lines[to]); to++ {
	}
	return from, to, true
}

func isHeader(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "[") }

// stateKey is the key of the hook whose table a line begins, however it is quoted.
func stateKey(line string) (key string, ok bool) {
	if !isHeader(line) {
		return "", false
	}
	var s State
	meta, err := toml.Decode(line, &s)
	if err != nil || len(s.Hooks.State) != 1 {
		return "", false
	}
	for k := range s.Hooks.State {
		key = k
	}
	deeper := slices.ContainsFunc(meta.Keys(), func(k toml.Key) bool { return len(k) > len(toml.Key{"hooks", "state", key}) })
	return key, !deeper
}

var hashLine = regexp.MustCompile(`^\s*trusted_hash\s*=\s*(?:"[^"]*"|'[^']*')`)

// hash is which of these lines names the hash; -1 where none does.
func (f *config) hash(from, to int) int {
	if i := slices.IndexFunc(f.lines[from:to], hashLine.MatchString); i >= 0 {
		return from + i
	}
	return -1
}

// inline is a table that no other line may add to, which this TOML library lets pass
// and Codex's does not.
var inline = regexp.MustCompile(`^\s*["']?(?:hooks|state|hooks["']?\s*\.\s*["']?state)["']?\s*=\s*\{`)

// check holds the lines against what they were: whatever is said beside the trust in
// these hooks is said still.
func (f *config) check(at hook.Inspection) error {
	was, err := without(f.before, at)
	if err != nil {
		return err
	}
	is, err := without(strings.Join(f.lines, ""), at)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(was, is) || slices.ContainsFunc(f.lines, inline.MatchString) {
		return errors.New("it is written in a way that cannot be changed safely")
	}
	return nil
}

// without is all that a config.toml says but the trust in these hooks.
func without(text string, at hook.Inspection) (map[string]any, error) {
	var all map[string]any
	if _, err := toml.Decode(text, &all); err != nil {
		return nil, err
	}
	hooks, _ := all["hooks"].(map[string]any) // what is no table holds no trust
	state, _ := hooks["state"].(map[string]any)
	for key, value := range state {
		one, _ := value.(map[string]any)
		if slices.ContainsFunc(at.All(), func(h hook.Installed) bool { return isOf(key, at.Path, h) }) {
			delete(one, "trusted_hash")
		}
		drop(state, key, one)
	}
	drop(hooks, "state", state)
	drop(all, "hooks", hooks)
	return all, nil
}

// drop leaves out a table that says nothing.
func drop(from map[string]any, key string, table map[string]any) {
	if from != nil && len(table) == 0 {
		if _, isTable := from[key].(map[string]any); isTable {
			delete(from, key)
		}
	}
}

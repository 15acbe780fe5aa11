package codex

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// config edits a config.toml line by line. A TOML library would drop the user's comments when it
// writes the file.
type config struct {
	lines  []string // the lines of the file, each with its line break
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

// trust sets one hook's hash in the hook's table. If the table is missing, trust adds it.
func (f *config) trust(path string, h hook.Installed, hash string) {
	entry := fmt.Sprintf("trusted_hash = %q\n", hash)
	from, to, found := f.table(path, h)
	if !found {
		if n := len(f.lines); n > 0 && !strings.HasSuffix(f.lines[n-1], "\n") {
			f.lines[n-1] += "\n"
		}
		f.lines = append(f.lines, fmt.Sprintf("[hooks.state.%q]\n", path+location(h)), entry)
		return
	}
	if at := f.hash(from, to); at >= 0 {
		f.lines[at] = hashLine.ReplaceAllLiteralString(f.lines[at], strings.TrimSuffix(entry, "\n"))
		return
	}
	if !strings.HasSuffix(f.lines[from], "\n") {
		f.lines[from] += "\n"
	}
	f.lines = slices.Insert(f.lines, from+1, entry)
}

// distrust removes one hook's hash. If the hook's table is then empty, distrust removes the table.
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

// table finds a hook's table. The table's lines are lines[from:to] of the file.
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

// stateKey returns the key of a hook if the line is the header of the hook's table. TOML allows several ways
// to quote the key; stateKey reads all of them.
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

var hashLine = lazyregexp.New(`^\s*trusted_hash\s*=\s*(?:"[^"]*"|'[^']*')`)

// hash searches lines[from:to] for the line that sets the hash. It returns the index of that line in the
// file, or -1.
func (f *config) hash(from, to int) int {
	if i := slices.IndexFunc(f.lines[from:to], hashLine.MatchString); i >= 0 {
		return from + i
	}
	return -1
}

// inline matches a line that defines hooks or hooks.state as an inline table. Codex rejects a file that adds
// to an inline table elsewhere, but the TOML library of nod accepts such a file.
var inline = lazyregexp.New(`^\s*["']?(?:hooks|state|hooks["']?\s*\.\s*["']?state)["']?\s*=\s*\{`)

// check returns an error if the edit changed anything but the trust in the given hooks, or if Codex could not
// read the result.
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
		return errors.New("its layout cannot be changed safely")
	}
	return nil
}

// without decodes a config.toml, and removes the trust in the given hooks from the result.
func without(text string, at hook.Inspection) (map[string]any, error) {
	var all map[string]any
	if _, err := toml.Decode(text, &all); err != nil {
		return nil, err
	}
	hooks, _ := all["hooks"].(map[string]any) // a value of another type contains no trust
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

// drop removes a key from a table if the key's value is an empty table.
func drop(from map[string]any, key string, table map[string]any) {
	if from != nil && len(table) == 0 {
		if _, isTable := from[key].(map[string]any); isTable {
			delete(from, key)
		}
	}
}

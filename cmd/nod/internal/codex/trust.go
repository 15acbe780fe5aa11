// Package codex is what Codex's config.toml says of hooks: it runs none that its
// user has not trusted, and says nothing.
package codex

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
	"github.com/gowebpki/jcs"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

// State is what Codex's config.toml holds of hooks: what its user trusted,
// by the place of each hook and a hash of it.
type State struct {
	Hooks struct {
		State map[string]Trusted `toml:"state"`
	} `toml:"hooks"`
}

// Trusted is what it holds of one hook.
type Trusted struct {
	Hash    string `toml:"trusted_hash"`
	Enabled *bool  `toml:"enabled"`
}

// Config is beside the user's hooks, even where a project's are looked at:
// it is the user who trusts.
func Config(path string) string {
	if user, err := hook.Inspect(hook.Codex(), hook.InstallOptions{}); err == nil {
		path = user.Path
	}
	return filepath.Join(filepath.Dir(path), "config.toml")
}

// Of is what is trusted of a hook in the file at path, by whatever name the
// file was read.
func (s *State) Of(path string, h hook.Installed) Trusted {
	for key, trusted := range s.Hooks.State {
		if isOf(key, path, h) {
			return trusted
		}
	}
	return Trusted{}
}

// isOf reports whether a key is of a hook in the file at path.
func isOf(key, path string, h hook.Installed) bool {
	file, here := strings.CutSuffix(key, place(h))
	return here && (file == path || sameFile(file, path))
}

func place(h hook.Installed) string {
	return fmt.Sprintf(":%s:%d:%d", snake(h.Event), h.Group, h.Index)
}

func sameFile(a, b string) bool {
	ai, err := os.Stat(a)
	if err != nil {
		return false
	}
	bi, err := os.Stat(b)
	return err == nil && os.SameFile(ai, bi)
}

// hookTimeout is what a hook gets that names no timeout, in seconds.
const hookTimeout = 600

// What Codex takes for the parts of some hooks, whatever its file says: the most
// seconds that they get, and that they have no matcher.
var (
	mostTimeout = map[string]int64{"Interrupt": 3, "SessionEnd": 3}
	noMatcher   = map[string]bool{"Interrupt": true, "Stop": true}
)

// Hash is what Codex takes for a hook's identity: its parts with their
// defaults filled in, as canonical JSON.
func Hash(h hook.Installed) string {
	timeout := cmp.Or(h.Timeout, hookTimeout)
	timeout = min(timeout, cmp.Or(mostTimeout[h.Event], timeout))
	identity := map[string]any{
		"event_name": snake(h.Event),
		"hooks":      []any{map[string]any{"type": "command", "command": h.Command, "timeout": timeout, "async": false}},
	}
	if h.Matcher != nil && !noMatcher[h.Event] {
		identity["matcher"] = *h.Matcher
	}
	data, err := schemas.Encode(identity)
	if err == nil {
		data, err = jcs.Transform(data)
	}
	if err != nil {
		return "" // no such command can be in a file
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func snake(event string) string {
	var b strings.Builder
	for i, r := range event {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Read is what the file at config says; one that is missing says nothing.
func Read(config string) (State, error) {
	var s State
	if _, err := toml.DecodeFile(config, &s); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	return s, nil
}

// Trust is the change of Codex's config.toml by which its user trusts the hooks
// that were found, as /hooks does. What else the file holds stays, to the byte, and
// so does that a hook is switched off. It fails where the file cannot be changed so.
func Trust(at hook.Inspection) (hook.Change, error) {
	c, err := change(at, func(f *config, h hook.Installed) {
		if hash := Hash(h); f.state.Of(at.Path, h).Hash != hash {
			f.trust(at.Path, h, hash)
		}
	})
	if err != nil {
		return c, err
	}
	will, err := parse(string(c.After))
	for _, h := range at.All() {
		if err == nil && will.state.Of(at.Path, h).Hash != Hash(h) {
			err = fmt.Errorf("%s says otherwise of the hook for %s", c.Path, h.Event)
		}
	}
	return c, err
}

// Distrust is the change that takes the trust back in the hooks that were found.
func Distrust(at hook.Inspection) (hook.Change, error) {
	return change(at, func(f *config, h hook.Installed) { f.distrust(at.Path, h) })
}

func change(at hook.Inspection, edit func(*config, hook.Installed)) (hook.Change, error) {
	c, err := hook.ReadFile(Config(at.Path))
	if err != nil {
		return c, err
	}
	f, err := parse(string(c.Before))
	if err != nil {
		return c, fmt.Errorf("read %s: %w", c.Path, err)
	}
	for _, h := range at.All() {
		edit(f, h)
	}
	c.After = []byte(strings.Join(f.lines, ""))
	if !c.Changed() {
		return c, nil
	}
	if err := f.check(at); err != nil {
		return c, fmt.Errorf("write into %s that a hook is trusted: %w", c.Path, err)
	}
	return c, nil
}

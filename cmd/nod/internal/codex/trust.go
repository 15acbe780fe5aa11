// Package codex reads and changes the list of trusted hooks in Codex's config.toml.
// Codex silently skips hooks that the user has not trusted.
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

// State is the section of Codex's config.toml with the trusted hooks. A key is the location of a hook:
// file, event and position. Its value has the hash of the hook that the user trusted at that location.
type State struct {
	Hooks struct {
		State map[string]Trusted `toml:"state"`
	} `toml:"hooks"`
}

// Trusted is the value for one hook in State.
type Trusted struct {
	Hash    string `toml:"trusted_hash"`
	Enabled *bool  `toml:"enabled"`
}

// Config returns the path of the config.toml that lists the trusted hooks of the file at
// path. It is always the user's config.toml, even for a project's hooks.
func Config(path string) string {
	if user, err := hook.Inspect(hook.Codex(), hook.InstallOptions{}); err == nil {
		path = user.Path
	}
	return filepath.Join(filepath.Dir(path), "config.toml")
}

// Of returns the entry of a hook in the file at path, or an empty entry. It also finds an entry whose
// key names the file by another path, such as a symbolic link.
func (s *State) Of(path string, h hook.Installed) Trusted {
	for key, trusted := range s.Hooks.State {
		if isOf(key, path, h) {
			return trusted
		}
	}
	return Trusted{}
}

// isOf reports whether a key of State belongs to the given hook in the file at path.
func isOf(key, path string, h hook.Installed) bool {
	file, here := strings.CutSuffix(key, location(h))
	return here && (file == path || sameFile(file, path))
}

// location returns the second half of a hook's key in State: the event, and the hook's position in the
// settings file.
func location(h hook.Installed) string {
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

// hookTimeout is the timeout in seconds that Codex gives a hook that sets none.
const hookTimeout = 600

// mostTimeout is the longest timeout in seconds that Codex permits, for each event with a limit.
// noMatcher lists the events for which Codex ignores the matcher.
var (
	mostTimeout = map[string]int64{"Interrupt": 3, "SessionEnd": 3}
	noMatcher   = map[string]bool{"Interrupt": true, "Stop": true, "UserPromptSubmit": true}
)

// Hash returns the hash by which Codex identifies a hook: SHA-256 of the hook's parts,
// with defaults filled in, as canonical JSON.
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
		return "" // Marshal cannot fail for strings from a file
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

// Read reads the config.toml at config. If it is missing, Read returns an empty State.
func Read(config string) (State, error) {
	var s State
	if _, err := toml.DecodeFile(config, &s); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	return s, nil
}

// Trust returns the change of Codex's config.toml that marks the given hooks as trusted, as Codex's command
// /hooks does. All other bytes of the file stay the same, and a hook that the user switched off stays off. If
// no change can do this, Trust returns an error.
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
			err = fmt.Errorf("%s would still not trust the hook for %s", c.Path, h.Event)
		}
	}
	return c, err
}

// Distrust returns the change that removes the trust in the given hooks.
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
		return c, fmt.Errorf("change the trust in hooks in %s: %w", c.Path, err)
	}
	return c, nil
}

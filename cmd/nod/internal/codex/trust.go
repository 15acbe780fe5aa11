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
	place := fmt.Sprintf(":%s:%d:%d", snake(h.Event), h.Group, h.Index)
	for key, trusted := range s.Hooks.State {
		file, here := strings.CutSuffix(key, place)
		if here && (file == path || sameFile(file, path)) {
			return trusted
		}
	}
	return Trusted{}
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

// Hash is what Codex takes for a hook's identity: its parts with their
// defaults filled in, as canonical JSON.
func Hash(h hook.Installed) string {
	identity := map[string]any{
		"event_name": snake(h.Event),
		"hooks":      []any{map[string]any{"type": "command", "command": h.Command, "timeout": cmp.Or(h.Timeout, hookTimeout), "async": false}},
	}
	if h.Matcher != nil {
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

// Trust has Codex's user trust the hooks that were found, as /hooks does, and
// reports whether that changed anything. What else the file holds stays. It fails,
// with the file as it was, where the result would not say so.
func Trust(at hook.Inspection) (config string, changed bool, err error) {
	config = Config(at.Path)
	state, err := Read(config)
	if err != nil {
		return config, false, fmt.Errorf("read %s: %w", config, err)
	}
	before, err := os.ReadFile(config)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return config, false, err
	}
	text := string(before)
	for _, h := range at.Hooks {
		if is := state.Of(at.Path, h); is.Hash == Hash(h) {
			continue
		}
		key := fmt.Sprintf("%s:%s:%d:%d", at.Path, snake(h.Event), h.Group, h.Index)
		header := fmt.Sprintf("[hooks.state.%q]\n", key)
		text = without(text, header) + header + fmt.Sprintf("trusted_hash = %q\n", Hash(h))
	}
	if text == string(before) {
		return config, false, nil
	}
	var will State
	if _, err := toml.Decode(text, &will); err != nil {
		return config, false, fmt.Errorf("write that the hook is trusted into %s: %w", config, err)
	}
	for _, h := range at.Hooks {
		if will.Of(at.Path, h).Hash != Hash(h) {
			return config, false, fmt.Errorf("%s says otherwise of the hook for %s", config, h.Event)
		}
	}
	return config, true, os.WriteFile(config, []byte(text), 0o600)
}

// without is a TOML text without the table that begins with this header, and ends
// with a line break.
func without(text, header string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	from := strings.Index(text, header)
	if from < 0 {
		return text
	}
	rest := text[from+len(header):]
	if next := strings.Index("\n"+rest, "\n["); next >= 0 {
		return text[:from] + rest[next:]
	}
	return text[:from]
}

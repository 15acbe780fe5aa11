package doctor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
	"github.com/gowebpki/jcs"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

// codexTrust looks at whether Codex runs the hooks of a file: it leaves out
// those that its user has not trusted, and those that changed since, and says
// nothing. Its config.toml holds what was trusted, by the place of each hook
// and a hash of it.
func codexTrust(check string, at hook.Inspection) []Finding {
	const trust = "start codex and trust it with /hooks"
	config := filepath.Join(filepath.Dir(codexFile(at.Path)), "config.toml")
	var read struct {
		Hooks struct {
			State map[string]struct {
				TrustedHash string `toml:"trusted_hash"`
				Enabled     *bool  `toml:"enabled"`
			} `toml:"state"`
		} `toml:"hooks"`
	}
	if _, err := toml.DecodeFile(config, &read); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []Finding{note(check, "whether Codex trusts the hook cannot be read: "+oneLine(err), trust+", if it has not run")}
	}
	var found []Finding
	for _, h := range at.Hooks {
		state, known := read.Hooks.State[codexKey(at.Path, h)]
		switch {
		case !known || state.TrustedHash == "":
			found = append(found, wrong(check, "Codex does not trust the hook for "+h.Event+", so that it does not run", trust))
		case state.Enabled != nil && !*state.Enabled:
			found = append(found, wrong(check, "Codex has the hook for "+h.Event+" switched off", "start codex and switch it on with /hooks"))
		case state.TrustedHash != codexHash(h):
			found = append(found, wrong(check, "the hook for "+h.Event+" is not what Codex trusted, so that it does not run", trust))
		}
	}
	if len(found) == 0 {
		return []Finding{ok(check, "Codex trusts the hook")}
	}
	return found
}

// codexFile is the user's hooks.json even where a project's is looked at: what
// is trusted is remembered for the user.
func codexFile(path string) string {
	if user, err := hook.Inspect(hook.Codex(), hook.InstallOptions{}); err == nil {
		return user.Path
	}
	return path
}

// codexKey is the name under which Codex remembers a hook.
func codexKey(path string, h hook.Installed) string {
	return fmt.Sprintf("%s:%s:%d:%d", path, snake(h.Event), h.Group, h.Index)
}

// codexHash is what Codex takes for a hook's identity: its parts with their
// defaults filled in, as canonical JSON.
func codexHash(h hook.Installed) string {
	identity := map[string]any{
		"event_name": snake(h.Event),
		"hooks":      []any{map[string]any{"type": "command", "command": h.Command, "timeout": max(h.Timeout, 1), "async": false}},
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

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

package doctor

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

// codexState is what Codex's config.toml holds of hooks: what its user trusted,
// by the place of each hook and a hash of it.
type codexState struct {
	Hooks struct {
		State map[string]codexTrusted `toml:"state"`
	} `toml:"hooks"`
}

type codexTrusted struct {
	Hash    string `toml:"trusted_hash"`
	Enabled *bool  `toml:"enabled"`
}

// codexTrust looks at whether Codex runs the hooks of a file: it leaves out
// those that its user has not trusted, and those that changed since, and says
// nothing.
func codexTrust(check string, at hook.Inspection) []Finding {
	const trust = "start codex and trust it with /hooks"
	var state codexState
	config := codexConfig(at.Path)
	if _, err := toml.DecodeFile(config, &state); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []Finding{note(check, fmt.Sprintf("whether Codex trusts the hook cannot be read in %s: %s", config, oneLine(err)), trust+", if it has not run")}
	}
	var found []Finding
	for _, h := range at.Hooks {
		trusted := state.of(at.Path, h)
		switch {
		case trusted.Hash == "":
			found = append(found, wrong(check, "Codex does not trust the hook for "+h.Event+", so that it does not run", trust))
		case trusted.Enabled != nil && !*trusted.Enabled:
			found = append(found, wrong(check, "Codex has the hook for "+h.Event+" switched off", "start codex and switch it on with /hooks"))
		case trusted.Hash != codexHash(h):
			found = append(found, wrong(check, "the hook for "+h.Event+" is not what Codex trusted, so that it does not run", trust))
		}
	}
	if len(found) == 0 {
		return []Finding{ok(check, "Codex trusts the hook")}
	}
	return found
}

// codexConfig is beside the user's hooks, even where a project's are looked at:
// it is the user who trusts.
func codexConfig(path string) string {
	if user, err := hook.Inspect(hook.Codex(), hook.InstallOptions{}); err == nil {
		path = user.Path
	}
	return filepath.Join(filepath.Dir(path), "config.toml")
}

// of is what is trusted of a hook in the file at path, by whatever name the
// file was read.
func (s *codexState) of(path string, h hook.Installed) codexTrusted {
	place := fmt.Sprintf(":%s:%d:%d", snake(h.Event), h.Group, h.Index)
	for key, trusted := range s.Hooks.State {
		file, here := strings.CutSuffix(key, place)
		if here && (file == path || sameFile(file, path)) {
			return trusted
		}
	}
	return codexTrusted{}
}

func sameFile(a, b string) bool {
	ai, err := os.Stat(a)
	if err != nil {
		return false
	}
	bi, err := os.Stat(b)
	return err == nil && os.SameFile(ai, bi)
}

// codexTimeout is what a hook gets that names no timeout, in seconds.
const codexTimeout = 600

// codexHash is what Codex takes for a hook's identity: its parts with their
// defaults filled in, as canonical JSON.
func codexHash(h hook.Installed) string {
	identity := map[string]any{
		"event_name": snake(h.Event),
		"hooks":      []any{map[string]any{"type": "command", "command": h.Command, "timeout": cmp.Or(h.Timeout, codexTimeout), "async": false}},
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

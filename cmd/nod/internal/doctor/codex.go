package doctor

import (
	"fmt"
	"strings"

	"github.com/nodbus/nod/cmd/nod/internal/codex"
	"github.com/nodbus/nod/connectors/agents/hook"
)

// codexTrust checks that Codex runs the hooks of a file. Codex silently skips a hook that the user has
// not trusted, or that was changed after the user trusted it.
func codexTrust(check string, at hook.Inspection) []Finding {
	const trust = "start codex and trust it with /hooks"
	config := codex.Config(at.Path)
	state, err := codex.Read(config)
	if err != nil {
		return []Finding{note(check, fmt.Sprintf("whether Codex trusts the hook cannot be read in %s: %s", config, oneLine(err)), trust+", if it has not run")}
	}
	var found []Finding
	for _, h := range at.Hooks {
		trusted := state.Of(at.Path, h)
		switch {
		case trusted.Hash == "":
			found = append(found, wrong(check, "Codex does not trust the hook for "+h.Event+", so that it does not run", trust))
		case trusted.Enabled != nil && !*trusted.Enabled:
			found = append(found, wrong(check, "Codex has the hook for "+h.Event+" switched off", "start codex and switch it on with /hooks"))
		case trusted.Hash != codex.Hash(h):
			found = append(found, wrong(check, "the hook for "+h.Event+" is not what Codex trusted, so that it does not run", trust))
		}
	}
	if len(found) == 0 {
		return []Finding{ok(check, "Codex trusts the hook")}
	}
	return found
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

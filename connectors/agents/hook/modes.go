package hook

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/tailscale/hujson"
)

// unaskedModes are the permission modes of Claude Code in which it asks its user
// nothing, and so calls no PermissionRequest hook. It starts in auto unless its
// settings name another one (2.1.329).
var unaskedModes = []string{"auto", "bypassPermissions", "dontAsk"}

// DefaultMode is the permission mode in which a settings file has Claude Code start,
// and whether that asks its user nothing. Both are zero if the file names none, or
// cannot be read.
func DefaultMode(path string) (mode string, asksNothing bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	if text, err = hujson.Standardize(text); err != nil {
		return "", false
	}
	var settings struct {
		Permissions struct {
			DefaultMode string `json:"defaultMode"`
		} `json:"permissions"`
	}
	if json.Unmarshal(text, &settings) != nil {
		return "", false
	}
	mode = settings.Permissions.DefaultMode
	return mode, slices.Contains(unaskedModes, mode)
}

// Unasked says when an installation in a settings file leaves nod unasked because of
// Claude Code's permission mode; empty for another host, and for a strict one.
func (h Host) Unasked(at Inspection) string {
	strict := func(i Installed) bool { return slices.Contains(h.Setup.Strict, i.Event) }
	if h.Name != ClaudeCode().Name || slices.ContainsFunc(at.Hooks, strict) {
		return ""
	}
	switch mode, asksNothing := DefaultMode(at.Path); {
	case asksNothing:
		return fmt.Sprintf("nod is asked nothing in the permission mode %s, which permissions.defaultMode names there, unless installed with --strict", mode)
	case mode != "":
		return fmt.Sprintf("nod is asked what Claude Code would ask its user, as in %s, which permissions.defaultMode names there; in the modes auto, bypassPermissions and dontAsk nothing is asked unless installed with --strict", mode)
	}
	return "nod is asked what Claude Code would ask its user, in the permission modes default, acceptEdits and plan; in auto, in which Claude Code may start, bypassPermissions and dontAsk nothing is asked unless installed with --strict"
}

package hook

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// unaskedModes are the permission modes in which Claude Code does not ask its user, and therefore runs no
// PermissionRequest hook. Claude Code 2.1.329 starts in the mode auto, unless its settings name another.
var unaskedModes = []string{"auto", "bypassPermissions", "dontAsk"}

// DefaultMode returns the default permission mode in a settings file of Claude Code, and whether Claude
// Code never asks its user in this mode. If the file has no mode or is unreadable, the results are ""
// and false.
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

// Unasked returns a sentence for the user about the permission modes in which Claude Code does not ask
// nod. The parameter at describes the hooks in a settings file. If they are strict, or the host is not
// Claude Code, the sentence is empty.
func (h Host) Unasked(at Inspection) string {
	strict := func(i Installed) bool { return slices.Contains(h.Setup.Strict, i.Event) }
	if h.Name != ClaudeCode().Name || slices.ContainsFunc(at.Hooks, strict) {
		return ""
	}
	unasked, more := "auto, bypassPermissions and dontAsk", ""
	if slices.ContainsFunc(at.Signals, func(i Installed) bool { return i.Event == h.Setup.Denied }) {
		unasked, more = "bypassPermissions and dontAsk", "; in auto nod is asked about the calls that Claude Code itself denies"
	}
	switch mode, asksNothing := DefaultMode(at.Path); {
	case mode == "auto" && more != "":
		return "permissions.defaultMode is auto: nod is asked about the calls that Claude Code itself denies, and about every call if installed with --strict"
	case asksNothing:
		return fmt.Sprintf("permissions.defaultMode is %s: in that mode nod is asked nothing unless installed with --strict", mode)
	case mode != "":
		return fmt.Sprintf("permissions.defaultMode is %s: nod is asked whenever Claude Code would ask its user%s; in the modes %s nod is asked nothing unless installed with --strict", mode, more, unasked)
	}
	return "nod is asked whenever Claude Code would ask its user, in the permission modes default, acceptEdits and plan" + more + "; in " + strings.Replace(unasked, "auto,", "auto, in which Claude Code may start,", 1) + " nod is asked nothing unless installed with --strict"
}

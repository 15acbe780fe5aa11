package doctor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/nodbus/nod/connectors/agents/hook"
)

// other is an agent program for which nod has no hook. The field by names another way in which the program
// can ask nod.
type other struct{ program, agent, by string }

// gate is the advice for an agent program that can ask nod about its MCP servers' tools, but not about its
// own tools.
const gate = "put nod mcp gate before its MCP servers; nod is not asked about its own tools"

var others = []other{
	{"opencode", "OpenCode", "nod opencode beside its server, or nod acp -- opencode acp in an editor; nod install opencode makes it ask"},
	{"cline", "Cline", "in an editor, nod acp -- cline --acp asks nod about every call; cline alone asks nobody"},
	{"kilo", "Kilo", "nod kilo beside its server; nod install kilo makes it ask"},
	{"auggie", "Auggie", gate},
	{"cursor-agent", "Cursor's command-line agent", "it may call fewer hooks than the editor, so that nod install cursor is not enough; " + gate},
	{"amp", "Amp", gate},
}

// ungated returns findings about agent programs in PATH for which nod has no hook. It also returns one
// about Cursor if Cursor may load nod's hook from Claude Code's settings. nod cannot see whether an
// editor starts a program through nod.
func ungated() (found []Finding) {
	for _, o := range others {
		if _, err := exec.LookPath(o.program); err == nil {
			found = append(found, note("agents", fmt.Sprintf("%s is on this machine, and no hook of nod gates it", o.agent), o.by))
		}
	}
	return append(found, cursor()...)
}

// cursor returns a finding if Cursor is used here and Claude Code's settings have nod's hook.
func cursor() []Finding {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(home, ".cursor")); err != nil {
		return nil
	}
	at, err := hook.Inspect(hook.ClaudeCode(), hook.InstallOptions{})
	if err != nil || len(at.Hooks) == 0 { // the check of Claude Code's hook reports this error
		return nil
	}
	return []Finding{note("agents", "Cursor can load the hooks in "+at.Path+", and then also runs nod's hook for Claude Code", "use nod install cursor, and turn Cursor's setting for hooks of other programs off; nod would be asked twice")}
}

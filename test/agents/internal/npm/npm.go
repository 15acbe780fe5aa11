// Package npm installs real agents for tests.
package npm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// OptIn is the environment variable that names the directory for agents. If it is not
// set, tests with real agents are skipped.
const OptIn = "NOD_TEST_AGENTS"

// Agent is a program of an npm package, in one version.
type Agent struct {
	Name, Package, Version, Program string
}

// The agents that are not among the hosts of package hook.
var (
	OpenCode = Agent{"opencode", "opencode-ai", "1.18.33", "opencode"}
	Codex    = Agent{"codex", "@openai/codex", "0.169.0", "codex"}
)

// In returns the path of the agent's program. The first use installs it in its own
// directory below dir, which is kept.
func (a Agent) In(dir string) (string, error) {
	dir = filepath.Join(dir, a.Name+"-"+a.Version)
	path := filepath.Join(dir, "node_modules", ".bin", a.Program)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	pkg := a.Package + "@" + a.Version
	out, err := exec.Command("npm", "install", "--no-audit", "--no-fund", "--prefix", dir, pkg).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("npm install %s: %w: %s", pkg, err, out)
	}
	return path, nil
}

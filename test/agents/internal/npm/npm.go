// Package npm installs the agents that tests run for real.
package npm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// OptIn names the directory that agents are installed in. Where it is not set
// nobody asked for them.
const OptIn = "NOD_TEST_AGENTS"

// Agent is a program of an npm package, in one version.
type Agent struct {
	Name, Package, Version, Program string
}

// The agents that no host of nod's names.
var (
	OpenCode = Agent{"opencode", "opencode-ai", "1.18.33", "opencode"}
	Codex    = Agent{"codex", "@openai/codex", "0.169.0", "codex"}
)

// In is the path of the agent's program, which is installed in a directory of its
// own below dir at the first use, and kept.
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

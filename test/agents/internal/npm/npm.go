// Package npm installs real agent programs for tests.
package npm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// OptIn is the environment variable that names the directory for agent programs. If it is not set, the
// tests that need these programs are skipped.
const OptIn = "NOD_TEST_AGENTS"

// Agent is an agent program in one version of its npm package. The field Name is nod's name for the agent.
type Agent struct {
	Name, Package, Version, Program string
}

// These agents are for tests without nod's hook. Each agent has one fixed version.
var (
	OpenCode = Agent{"opencode", "opencode-ai", "1.18.33", "opencode"}
	Kilo     = Agent{"kilo", "@kilocode/cli", "7.7.7", "kilo"}
	Codex    = Agent{"codex", "@openai/codex", "0.169.0", "codex"}
	CodexACP = Agent{"codex-acp", "@zed-industries/codex-acp", "0.16.0", "codex-acp"}
	Cline    = Agent{"cline", "cline", "3.0.65", "cline"}
)

// Inspector is the official command-line client for MCP, and Filesystem is an official MCP server.
var (
	Inspector  = Agent{"inspector", "@modelcontextprotocol/inspector", "2.12.0", "mcp-inspector"}
	Filesystem = Agent{"filesystem", "@modelcontextprotocol/server-filesystem", "2026.8.31", "mcp-server-filesystem"}
)

// frameworks lists the npm packages for the tests of adapters, with their versions.
var frameworks = []string{"ai@7.0.173", "@openai/agents@0.20.0", "langchain@1.5.14", "@langchain/core", "@mastra/core@1.71.0", "zod"}

// Frameworks returns a subdirectory of dir with the frameworks. If they are missing, it installs them.
func Frameworks(dir string) (string, error) {
	return libraries(filepath.Join(dir, "frameworks-1"), "ai", frameworks)
}

// MCPClient installs the official SDK for MCP clients into a subdirectory of dir, if it is missing, and returns
// that subdirectory.
func MCPClient(dir string) (string, error) {
	const name, version = "@modelcontextprotocol/sdk", "1.32.2"
	return libraries(filepath.Join(dir, "mcp-sdk-"+version), name, []string{name + "@" + version})
}

// libraries installs npm packages into the directory dir. It installs nothing if the directory already has
// the package whose name is the parameter there.
func libraries(dir, there string, packages []string) (string, error) {
	if _, err := os.Stat(filepath.Join(dir, "node_modules", there)); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	out, err := exec.Command("npm", append([]string{"install", "--no-audit", "--no-fund", "--prefix", dir}, packages...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("npm install %s: %w: %s", there, err, out)
	}
	return dir, nil
}

// In returns the path of the agent's program in a subdirectory of dir. If the program is missing, In
// installs it. Later runs use that installation.
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
	install := exec.Command("npm", "install", "--no-audit", "--no-fund", "--prefix", dir, pkg)
	if a.Package == OpenClaw {
		bin, err := NewNode(filepath.Dir(dir))
		if err != nil {
			return "", err
		}
		install.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	}
	out, err := install.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("npm install %s: %w: %s", pkg, err, out)
	}
	return path, nil
}

// OpenClaw is the npm package that needs a newer Node.js than the other agents.
const OpenClaw = "openclaw"

// NewNode returns a subdirectory of dir with a Node.js for OpenClaw. If it is missing, NewNode installs it.
func NewNode(dir string) (bin string, err error) {
	path, err := Agent{"node", "node", "24", "node"}.In(dir)
	return filepath.Dir(path), err
}

package secrets

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestListedTakesNamesLiterally(t *testing.T) {
	n := Compile()
	for p, want := range map[string]bool{
		"/p/.env": true, "/p/sub/key.pem": true, "/p/.ssh/x": true, "/p/.mcp.json": true, "/p/.nod/settings.json": true, "/p/.ENV": true,
		"/p/.env.example": false, "/p/[id].tsx": false, "/p/[...slug]/page.tsx": false, "/p/*": false, "/p/a?b": false, "/p/main.go": false, "/p/.github/workflows/ci.yml": false,
		"/dev/shm/p/main.go": false, "/dev/shm/p/.env": true,
	} {
		assert.Equal(t, want, n.Listed(p), p)
	}
}

func TestProtectedNamesDecideWhatOtherProgramsRun(t *testing.T) {
	n := CompileProtected()
	for rel, want := range map[string]bool{
		".claude/settings.json": true, ".claude": true, "sub/.claude/commands/x.md": true, ".mcp.json": true, "AGENTS.md": true, "sub/CLAUDE.md": true, ".github/workflows/ci.yml": true, ".gitlab-ci.yml": true,
		".vscode/tasks.json": true, ".idea/x": true, ".envrc": true, ".husky/pre-commit": true, ".nod/settings.json": true, ".codex": true, ".gemini/settings.json": true, ".factory": true, ".factory/hooks.json": true, "opencode.json": true, ".pre-commit-config.yaml": true, ".gitattributes": true,
		"main.go": false, "package.json": false, ".env": false, ".github": false, ".github/ISSUE_TEMPLATE/x.md": false, ".cache/x": false, "node_modules/x/index.js": false, "dist/a.js": false, "src/head/index.ts": false, ".venv/bin/python": false, ".next/x": false,
	} {
		assert.Equal(t, want, n.Has(rel), rel)
	}
}

func TestNamesBeginWithDirectories(t *testing.T) {
	t.Parallel()
	n := Compile()
	for dir, want := range map[string]bool{
		"/p/.docker": true, "/p/a/.config": true, "/p/.Config": true, "/p/.cargo": true, "/etc": true,
		"/p/src": false, "/p/library": false, "/p/.kube": false, "/p/.github": false, "/p/node_modules/.bin": false, "/p/.config/x": false,
	} {
		assert.Equal(t, want, n.MayBegin(dir), dir)
	}
}

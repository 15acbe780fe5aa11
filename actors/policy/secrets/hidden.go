package secrets

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
)

// harmlessHidden are hidden files and directories outside the project that agents read and that
// contain no secrets. They are toolchains, module caches, and the agents' own instructions. nod asks
// about all other hidden files, because no list of secrets is complete. A * stands for one segment.
var harmlessHidden = splitRows([]string{
	// toolchains
	".cargo/bin", ".rustup/toolchains", ".nvm/versions", ".fnm", ".volta/tools", ".pyenv/versions", ".rbenv/versions", ".rvm/rubies", ".asdf/installs", ".goenv/versions",
	".sdkman/candidates", ".jenv/versions", ".deno/bin", ".bun/bin", ".dotnet/sdk", ".local/bin", ".local/lib", ".local/pipx/venvs", ".local/share/mise/installs", ".local/share/uv/python", ".local/share/uv/tools",
	// caches of modules and packages
	".cargo/registry", ".cargo/git", ".npm/_npx", ".pnpm-store", ".local/share/pnpm", ".yarn/cache", ".yarn/berry", ".bun/install/cache", ".m2/repository", ".gradle/caches", ".gradle/wrapper", ".ivy2/cache",
	".nuget/packages", ".pub-cache", ".rbenv/shims", ".gem/ruby", ".gem/specs", ".composer/cache", ".cocoapods/repos", ".hex/packages", ".stack/programs", ".cabal/packages", ".opam/*/lib",
	".cache/go-build", ".cache/pip", ".cache/uv", ".cache/yarn", ".cache/pnpm", ".cache/deno", ".cache/bazel", ".cache/ms-playwright", ".cache/typescript", ".venv", ".pnpm", ".bin",
	"library/caches/go-build", "library/caches/homebrew", "library/caches/pip", "library/caches/ms-playwright", "library/developer/xcode/deriveddata",
	"appdata/local/go-build", "appdata/local/pip", "appdata/local/npm-cache", "appdata/local/programs",
	// agents' instructions and plans
	".claude/claude.md", ".claude/agents", ".claude/commands", ".claude/plans", ".claude/plugins", ".claude/rules", ".claude/skills", ".claude/projects/*/memory", ".claude/projects/*/tool-results", ".claude/projects/*/*/tool-results",
	".codex/agents.md", ".codex/plugins", ".codex/prompts", ".codex/skills", ".gemini/gemini.md", ".agents",
})

func splitRows(names []string) [][]string {
	rows := make([][]string, len(names))
	for i, name := range names {
		rows[i] = strings.Split(name, "/")
	}
	return rows
}

// HiddenOutside reports whether t may mean a path outside the project that is hidden or in a hidden
// directory. Known harmless paths do not count. On macOS and Windows, the directories for programs'
// settings count as hidden.
func (n *Names) HiddenOutside(t string, loc *pathname.Location) bool {
	if loc.NamesOnly {
		return false
	}
	outside := func(full string) bool {
		return !(loc.Project != "" && loc.InTree(full)) && hidden(strings.Split(strings.ToLower(full), "/"), loc)
	}
	if slices.ContainsFunc(loc.Follow(t), outside) {
		return true
	}
	slashed := pathname.Slashes(t)
	switch {
	case pathname.IsAbs(slashed) && !mayBeHidden(slashed):
		return false
	case !pathname.IsAbs(slashed) && !loc.LeadsToSecret && !strings.Contains(t, "..") && !strings.HasPrefix(t, "~"):
		return false
	}
	all := loc.Spelled(t)
	if len(all) == 0 && strings.HasPrefix(t, "~/") {
		return hidden(strings.Split(strings.ToLower(slashed), "/"), loc)
	}
	return slices.ContainsFunc(all, outside)
}

// mayBeHidden is a fast check. If it returns false, the path p is not hidden.
func mayBeHidden(p string) bool {
	return strings.Contains(p, "/.") || strings.Contains(p, "ibrary") || strings.Contains(strings.ToLower(p), "appdata")
}

func hidden(segs []string, loc *pathname.Location) bool {
	for i, seg := range segs {
		library := seg == "library" && i > 0 && (segs[0] == "~" || loc.HoldsHome(strings.Join(segs[:i], "/")))
		switch {
		case seg == "" || seg == "." || seg == "..":
		case seg[0] != '.' && seg != "appdata" && !library:
		case pathname.PlainDotName(seg):
		case slices.ContainsFunc(harmlessHidden, func(row []string) bool { return beginsWith(segs[i:], row) }):
			return false
		default:
			return true
		}
	}
	return false
}

func beginsWith(segs, row []string) bool {
	if len(segs) < len(row) {
		return false
	}
	for i, want := range row {
		if segs[i] != want && (want != "*" || pathname.IsGlob(segs[i])) {
			return false
		}
	}
	return true
}

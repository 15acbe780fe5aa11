package pathname

import (
	"slices"
	"strings"
)

// dotNames are hidden files of a project that people edit like any other file. All other hidden
// files may decide what shells, editors, agents and version control run.
var dotNames = set(".github .gitignore .gitkeep .dockerignore .editorconfig .prettierrc .prettierrc.json .prettierignore .eslintrc .eslintrc.json .eslintignore " +
	".golangci.yml .golangci.yaml .nvmrc .node-version .python-version .ruby-version .npmignore .storybook .changeset .circleci .gitlab-ci.yml .travis.yml .markdownlint.json .well-known .env.example")

// PlainDotName reports whether a segment, which must be in lower case, is one of dotNames.
func PlainDotName(seg string) bool { return dotNames[seg] }

// NeverRemembered are files that decide which programs run, or that make a directory a repository. In
// every directory, git reads files such as HEAD, config and hooks. nod proposes no rule for these files.
var NeverRemembered = Compile(NeverRememberedNames())

// NeverRememberedNames returns the patterns of NeverRemembered.
func NeverRememberedNames() []string { return slices.Clone(neverRemembered) }

var neverRemembered = []string{
	".git", "head", ".gitmodules", ".gitattributes", ".hg", ".jj", ".svn", ".claude", ".codex", ".cursor", ".gemini", ".qwen", ".copilot", ".factory", ".opencode", ".pi", ".augment", ".aider*",
	".github/hooks", ".vscode", ".idea", ".zed", "*.code-workspace", ".devcontainer", ".husky", ".githooks", ".envrc", ".direnv", ".pre-commit-config.yaml", "lefthook.yml",
	".mise.toml", "mise.toml", ".tool-versions",
}

// Unusual returns the segments of a path that are hidden, or that may be another spelling of a
// name; for example, GIT~1 may mean .git. If NeverRemembered has a path without such segments,
// Unusual returns the path itself.
func Unusual(p string) []string {
	var out []string
	for seg := range strings.SplitSeq(strings.ToLower(p), "/") {
		other := seg != strings.Trim(seg, " \t\n") || strings.HasSuffix(seg, ".") || strings.ContainsAny(seg, "\\:*?[") || shortName(seg)
		if seg != "" && (other || seg[0] == '.' && !dotNames[seg]) {
			out = append(out, seg)
		}
	}
	if len(out) == 0 && NeverRemembered.Has(p, true) {
		out = append(out, p)
	}
	return out
}

// shortName reports whether Windows may read a segment as the short form of a longer name. For example,
// GIT~1 may be the short form of .git.
func shortName(seg string) bool {
	i := strings.IndexByte(seg, '~')
	return i > 0 && i+1 < len(seg) && seg[i+1] >= '0' && seg[i+1] <= '9'
}

func set(names string) map[string]bool {
	out := map[string]bool{}
	for n := range strings.FieldsSeq(names) {
		out[n] = true
	}
	return out
}

package contain

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
)

// gitSetting is one setting in a git configuration file.
type gitSetting struct{ section, key, value string }

// parseGitConfig returns the settings in a git configuration file. It is more tolerant than
// git, so that it may also return settings that git refuses to read.
func parseGitConfig(data string) []gitSetting {
	var all []gitSetting
	section := ""
	data = strings.ReplaceAll(strings.ReplaceAll(data, "\r\n", "\n"), "\\\n", "")
	for line := range strings.Lines(data) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, _ := strings.Cut(line[1:], "]")
			section, _, _ = strings.Cut(strings.ToLower(head), " ")
			section, _, _ = strings.Cut(section, ".")
			line = strings.TrimSpace(rest)
		}
		key, value, _ := strings.Cut(line, "=")
		if key = strings.ToLower(strings.TrimSpace(key)); key == "" || key[0] == '#' || key[0] == ';' {
			continue
		}
		value = strings.TrimSpace(value)
		all = append(all, gitSetting{section, key, value})
	}
	return all
}

// unquote returns the value of a setting without quotes and escapes.
func unquote(value string) string {
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `"`, "").Replace(value)
}

// runsProgram reports whether git may run the setting's value as a command.
func (s gitSetting) runsProgram() bool {
	switch s.section {
	case "alias", "filter", "merge", "mergetool", "difftool", "diff", "credential", "gpg", "uploadpack", "pager", "sequence", "interactive", "submodule", "trailer", "hook", "browser", "man", "instaweb":
		return true
	case "core":
		return strings.HasSuffix(s.key, "monitor") || strings.HasSuffix(s.key, "command") || s.key == "pager" || s.key == "editor" || s.key == "askpass" || s.key == "gitproxy" || s.key == "alternaterefscommand"
	}
	return false
}

// gitNames collects the paths in the configuration of a repository.
type gitNames struct {
	top, home string
	seen      map[string]bool
	paths     []string // paths that exist or that a program could create
}

// readConfig adds the paths in a configuration file to g.paths: paths of hooks, attributes,
// included files and programs.
func (g *gitNames) readConfig(file string) {
	if g.seen[file] || len(g.seen) > 64 {
		return
	}
	g.seen[file] = true
	data, err := os.ReadFile(file)
	if err != nil {
		return
	}
	for _, s := range parseGitConfig(string(data)) {
		value := unquote(s.value)
		switch {
		case s.section == "core" && (s.key == "hookspath" || s.key == "attributesfile"):
			g.paths = append(g.paths, g.resolve(value, g.top))
		case (s.section == "include" || s.section == "includeif") && s.key == "path":
			to := g.resolve(value, filepath.Dir(file))
			g.paths = append(g.paths, to)
			g.readConfig(to)
		case s.runsProgram():
			for _, word := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t!;|&'\"()<>", r) }) {
				at := g.resolve(word, g.top)
				info, err := os.Stat(at)
				byItself := s.section != "alias" && strings.Contains(word, "/") && !strings.HasPrefix(word, "-")
				if err == nil && info.Mode().IsRegular() || os.IsNotExist(err) && byItself { // list a missing program too, because the command must not create it
					g.paths = append(g.paths, at)
				}
			}
		}
	}
}

func (g *gitNames) resolve(p, base string) string {
	switch {
	case strings.HasPrefix(p, "~/"):
		return filepath.Join(g.home, p[2:])
	case filepath.IsAbs(p):
		return filepath.Clean(p)
	}
	return filepath.Join(base, p)
}

// userInfo matches the user name and password in a URL.
var userInfo = lazyregexp.New(`(://)[^/@\s"']+@`)

// withoutLogins returns the text of a git configuration file without credential helpers, user names
// and passwords in URLs, headers, cookies and tokens.
func withoutLogins(data string) string {
	var out strings.Builder
	section, dropped := "", false
	for line := range strings.Lines(data) {
		goesOn := strings.HasSuffix(strings.TrimRight(line, "\r\n"), `\`)
		bare := strings.ToLower(strings.TrimSpace(line))
		if !dropped && strings.HasPrefix(bare, "[") {
			section, _, _ = strings.Cut(bare[1:], "]")
			section = strings.Trim(section, " ")
		}
		key, _, _ := strings.Cut(bare, "=")
		secretLine := strings.HasPrefix(section, "credential")
		for _, word := range []string{"extraheader", "cookie", "pass", "token", "secret", "apikey", "sslkey"} {
			secretLine = secretLine || strings.Contains(key, word)
		}
		if !dropped && !secretLine {
			out.WriteString(userInfo.ReplaceAllString(line, "$1"))
		} else if strings.HasPrefix(bare, "[") && !strings.HasPrefix(section, "credential") {
			out.WriteString("[" + section + "]\n")
		}
		dropped = (dropped || secretLine) && goesOn
	}
	return out.String()
}

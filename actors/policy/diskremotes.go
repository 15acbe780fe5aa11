package policy

import (
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
)

// Remotes returns the remotes of the repository of dir, for people. Where a setting changes addresses, or
// may, the place of each remote is commands.Unknown. nod sees neither the variables of the call's shell
// nor the settings of ssh.
func (ThisDisk) Remotes(c Call, dir string) (all pathname.Remotes) {
	all = pathname.Remotes{Push: map[string]string{}, Fetch: map[string]string{}}
	top, err := ThisDisk{}.WorkTree(dir)
	if err != nil {
		return all
	}
	admin, common := gitStore(top)
	settings := gitSettings{values: map[string][]string{}}
	settings.read("/etc/gitconfig")
	if c.Home != "" {
		settings.read(c.Home + "/.gitconfig")
		settings.read(c.Home + "/.config/git/config")
	} else {
		settings.rewritten = true
	}
	settings.read(common + "/config")
	settings.read(admin + "/config.worktree")
	for key := range settings.values {
		name, isURL := strings.CutPrefix(strings.TrimSuffix(key, ".url"), "remote.")
		if !isURL || !strings.HasSuffix(key, ".url") {
			continue
		}
		all.Fetch[name] = settings.place(key)
		if all.Push[name] = all.Fetch[name]; len(settings.values["remote."+name+".pushurl"]) > 0 {
			all.Push[name] = settings.place("remote." + name + ".pushurl")
		}
	}
	head, err := readGitFile(admin + "/HEAD")
	branch, on := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: refs/heads/")
	if err != nil || !on || settings.rewritten {
		return all
	}
	all.DefaultFetch = settings.last("branch."+branch+".remote", "")
	if _, known := all.Fetch["origin"]; known && all.DefaultFetch == "" {
		all.DefaultFetch = "origin"
	}
	all.Default = settings.last("branch."+branch+".pushremote", settings.last("remote.pushdefault", all.DefaultFetch))
	return all
}

// gitSettings are the settings of git's configuration files, each by its name, such as remote.origin.url.
type gitSettings struct {
	values    map[string][]string
	rewritten bool // a setting may change the addresses
}

// read adds the settings of a file.
func (g *gitSettings) read(file string) {
	text, err := readGitFile(file)
	if isMissing(err) {
		return
	}
	low := strings.ToLower(string(text))
	for _, sign := range []string{"insteadof", "[include", "vcs", "\\"} {
		g.rewritten = g.rewritten || err != nil || strings.Contains(low, sign)
	}
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, _ := strings.Cut(line[1:], "]")
			name, sub, _ := strings.Cut(head, " ")
			section, line = strings.ToLower(name)+".", strings.TrimSpace(rest)
			if sub = strings.Trim(strings.TrimSpace(sub), `"`); sub != "" {
				section += sub + "."
			}
		}
		if key, value, with := strings.Cut(line, "="); with {
			key = section + strings.ToLower(strings.TrimSpace(key))
			g.values[key] = append(g.values[key], strings.TrimSpace(value))
		}
	}
}

// last returns the value of a setting that git uses, or otherwise.
func (g *gitSettings) last(key, otherwise string) string {
	if all := g.values[key]; len(all) > 0 {
		return all[len(all)-1]
	}
	return otherwise
}

// place returns the host and the path of each address of a setting.
func (g *gitSettings) place(key string) string {
	var places []string
	for _, address := range g.values[key] {
		at := commands.RemoteAddress(address)
		if g.rewritten || at == "" || strings.ContainsAny(address, `"'#; `) {
			return commands.Unknown
		}
		places = append(places, at)
	}
	return strings.Join(places, " and ")
}

package policy

import (
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// Remotes returns the remotes of the repository that contains dir, for people. If a setting may change where
// a remote leads, the place of each remote is commands.Unknown. nod sees neither the variables of the call's
// shell nor the settings of ssh.
func (ThisDisk) Remotes(c Call, dir string) (all pathname.Remotes) {
	all = pathname.Remotes{Push: map[string]string{}, Fetch: map[string]string{}}
	top, err := ThisDisk{}.WorkTree(dir)
	if err != nil {
		return all
	}
	admin, common := gitStore(top)
	head, err := readGitFile(admin + "/HEAD")
	branch, on := strings.CutPrefix(strings.TrimRight(string(head), "\r\n"), "ref: refs/heads/")
	if err != nil || !on && !commitID.MatchString(strings.TrimSpace(string(head))) || admin == top || !exists(common+"/refs") {
		return all // this directory is no complete repository, so git may use another one
	}
	settings := gitSettings{values: map[string][]string{}, rewritten: c.Home == "" || exists(admin+"/config.worktree")}
	for _, file := range sharedGitConfigs(c.Home) {
		settings.read(file)
	}
	settings.read(common+"/config", ownSigns...)
	for key := range settings.values {
		name, isRemote := strings.CutPrefix(key, "remote.")
		name, isURL := strings.CutSuffix(name, ".url")
		if !isRemote || !isURL {
			continue
		}
		push := "remote." + name + ".pushurl"
		if len(settings.values[push]) == 0 {
			push = key
		}
		all.Fetch[name], all.Push[name] = settings.place(key), settings.place(push)
	}
	if !on || settings.rewritten {
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
	rewritten bool // a setting may change the addresses of remotes
}

// commitID matches the content of HEAD if no branch is checked out.
var commitID = lazyregexp.New(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// rewritingSigns are texts in git's settings that may change the address of a remote. ownSigns are texts,
// such as proxy, that may lead git to another place than the address names. In the user's own settings, a
// proxy is usual and does not count. In a repository's settings it counts, because git does not write it
// there by itself.
var (
	rewritingSigns = []string{"insteadof", "[include", "vcs", "[remotes", "sshcommand", "curloptresolve", "\\"}
	ownSigns       = []string{"proxy", "sslverify", "sslca"}
)

// gitSection and gitSetting match the lines of git's configuration that nod can read. Any other line makes
// the addresses unknown.
var (
	gitSection = lazyregexp.New(`^\[([A-Za-z0-9.-]+)(?: "([^"\]]*)")?\]$`)
	gitSetting = lazyregexp.New(`^([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?$`)
)

// read adds the settings of a configuration file. If the file contains a text of the argument signs or of
// rewritingSigns, the addresses of all remotes count as unknown.
func (g *gitSettings) read(file string, signs ...string) {
	text, err := readGitFile(file)
	if isMissing(err) {
		return
	}
	low := strings.ToLower(string(text))
	for _, sign := range append(signs, rewritingSigns...) {
		g.rewritten = g.rewritten || err != nil || strings.Contains(low, sign)
	}
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.Trim(line, " \t\r\n")
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if m := gitSection.FindStringSubmatch(line); m != nil {
			section = strings.ToLower(m[1]) + "."
			if m[2] != "" {
				section += m[2] + "."
			}
			continue
		}
		m := gitSetting.FindStringSubmatch(line)
		if m == nil || section == "" {
			g.rewritten = true
			continue
		}
		key := section + strings.ToLower(m[1])
		g.values[key] = append(g.values[key], m[2])
	}
}

// last returns the value that git uses for a setting with several values: the last one. If the setting has no
// value, last returns the argument otherwise.
func (g *gitSettings) last(key, otherwise string) string {
	if all := g.values[key]; len(all) > 0 {
		return all[len(all)-1]
	}
	return otherwise
}

// place returns the hosts and paths of a setting's addresses, or commands.Unknown if one of them is unclear.
func (g *gitSettings) place(key string) string {
	var places []string
	for _, address := range g.values[key] {
		at := commands.RemoteAddress(address)
		if g.rewritten || at == "" || strings.ContainsAny(address, `"'#; `) || !commands.IsPlain(strings.TrimPrefix(at, "the directory ")) {
			return commands.Unknown
		}
		places = append(places, at)
	}
	return strings.Join(places, " and ")
}

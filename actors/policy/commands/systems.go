package commands

import (
	"net/url"
	"slices"
	"strings"
)

// Unknown is the name of a place that nod cannot tell.
const Unknown = "an unknown place"

// system says how a program names the system on which it acts.
type system struct {
	flags [][]string // the words for people, then the flags whose values name the system
	inUse string     // what people read if no flag names one
}

// systems are the programs that act on a system which their flags, or settings that nod does not see, choose.
var systems = map[string]system{
	"kubectl":          {[][]string{{"context", "context"}, {"cluster", "cluster"}, {"server", "s", "server"}, {"kubeconfig", "kubeconfig"}, {"namespace", "n", "namespace"}}, "the context in use"},
	"ansible":          {[][]string{{"inventory", "i", "inventory"}}, "the inventory in use"},
	"ansible-playbook": {[][]string{{"inventory", "i", "inventory"}}, "the inventory in use"},
	"flyctl":           {[][]string{{"app", "a", "app"}}, "the app in use"},
	"eb":               {[][]string{{"profile", "profile"}, {"region", "r", "region"}}, "the environment in use"},
	"railway":          {[][]string{{"environment", "e", "environment"}}, "the project in use"},
	"firebase":         {[][]string{{"project", "P", "project"}}, "the project in use"},
	"doctl":            {[][]string{{"context", "context"}}, "the context in use"},
	"helm":             {[][]string{{"context", "kube-context"}, {"kubeconfig", "kubeconfig"}, {"namespace", "n", "namespace"}}, "the context in use"},
	"terraform":        {[][]string{{"directory", "chdir"}, {"state", "state"}, {"target", "target"}, {"variables", "var-file"}}, "all of this directory's state"},
	"tofu":             {[][]string{{"directory", "chdir"}, {"state", "state"}, {"target", "target"}, {"variables", "var-file"}}, "all of this directory's state"},
	"pulumi":           {[][]string{{"stack", "s", "stack"}}, "the stack in use"},
	"aws":              {[][]string{{"profile", "profile"}, {"region", "region"}, {"endpoint", "endpoint-url"}}, "the profile in use"},
	"gcloud":           {[][]string{{"project", "project"}, {"account", "account"}}, "the project in use"},
	"az":               {[][]string{{"subscription", "subscription"}, {"resource group", "g", "resource-group"}}, "the subscription in use"},
	"heroku":           {[][]string{{"app", "a", "app"}, {"remote", "r", "remote"}}, "the app in use"},
	"fly":              {[][]string{{"app", "a", "app"}}, "the app in use"},
	"vercel":           {[][]string{{"scope", "S", "scope"}}, "the project in use"},
	"netlify":          {[][]string{{"site", "s", "site"}}, "the site in use"},
	"wrangler":         {[][]string{{"environment", "e", "env"}}, "the account in use"},
	"gh":               {[][]string{{"repository", "R", "repo"}, {"host", "hostname"}}, "the repository in use"},
	"glab":             {[][]string{{"repository", "R", "repo"}}, "the repository in use"},
	"psql":             {[][]string{{"host", "h", "host"}, {"database", "d", "dbname"}}, "the server in use"},
	"mysql":            {[][]string{{"host", "h", "host"}, {"database", "D", "database"}}, "the server in use"},
	"redis-cli":        {[][]string{{"host", "h"}, {"address", "u"}}, "the server in use"},
	"npm":              {[][]string{{"registry", "registry"}}, "the registry in use"},
	"pnpm":             {[][]string{{"registry", "registry"}}, "the registry in use"},
	"yarn":             {[][]string{{"registry", "registry"}}, "the registry in use"},
	"cargo":            {[][]string{{"registry", "registry"}, {"index", "index"}}, "the registry in use"},
	"gem":              {[][]string{{"host", "host"}}, "the registry in use"},
	"twine":            {[][]string{{"repository", "r", "repository", "repository-url"}}, "the registry in use"},
}

// systemNames returns the names of the system on which a command acts.
func systemNames(name string, args []string) (names []string) {
	s, known := systems[name]
	if !known {
		return hosts(name, args)
	}
	if all := operands(args, "X", "method", "f", "F", "field", "raw-field", "hostname"); name == "gh" && len(all) > 1 && all[0] == "api" {
		if in := strings.Split(strings.TrimPrefix(all[1], "/"), "/"); len(in) > 2 && in[0] == "repos" {
			return append([]string{"repository " + in[1] + "/" + in[2]}, flagValues(args, "hostname")...)
		}
		s.inUse = "the host in use"
	}
	for _, flag := range s.flags {
		for _, value := range flagValues(args, flag[1:]...) {
			names = append(names, flag[0]+" "+withoutUser(value))
		}
	}
	for _, a := range operands(args) {
		if at := strings.Index(a, "://"); at > 0 && !strings.ContainsAny(a[:at], "= ") {
			names = append(names, withoutUser(a))
		}
	}
	switch {
	case len(names) > 0:
	case slices.Contains(operands(args), ""): // the shell knows the word, which may be an address
		return []string{Unknown}
	default:
		return []string{s.inUse}
	}
	return names
}

// flagValues returns the values of flags, of which those with one letter may have the value in the same word.
func flagValues(args []string, flags ...string) (values []string) {
	for i, a := range args {
		if a == "--" {
			break
		}
		name := strings.TrimLeft(a, "-")
		if name == a || name == "" {
			continue
		}
		key, value, with := strings.Cut(name, "=")
		letter := !strings.HasPrefix(a, "--")
		switch {
		case slices.Contains(flags, key) && with:
			values = append(values, value)
		case slices.Contains(flags, key) && i+1 < len(args):
			values = append(values, args[i+1])
		case letter && slices.Contains(flags, name[:1]) && len(name) > 1:
			values = append(values, name[1:])
		}
	}
	return values
}

// withoutUser returns an address without the name and the password in it, and without its query. It
// returns Unknown for an address that nod cannot read.
func withoutUser(address string) string {
	if !strings.Contains(address, "://") {
		return address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return Unknown
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/")
}

// pushFlags are the flags of git push and similar commands whose next word is a value.
var pushFlags = []string{"o", "push-option", "repo", "receive-pack", "exec", "upload-pack", "depth", "b", "branch", "j", "jobs", "s", "strategy", "X"}

// DefaultRemote is the name of the repository to which git pushes if the command names none.
const DefaultRemote = "git's default remote"

// Remote returns the repository with which a git command exchanges commits, as the command names it, or
// DefaultRemote, and the words after it. ok is false for other commands.
func Remote(argv []string) (remote string, rest []string, ok bool) {
	argv = withoutGlobals(argv)
	if ProgramName(argv[0]) != "git" || len(argv) < 2 || !slices.Contains([]string{"push", "pull", "fetch", "ls-remote"}, argv[1]) {
		return "", nil, false
	}
	if repo := flagValues(argv[2:], "repo"); len(repo) > 0 {
		return repo[0], operands(argv[2:], pushFlags...), true
	}
	if all := operands(argv[2:], pushFlags...); len(all) > 0 {
		return all[0], all[1:], true
	}
	return DefaultRemote, nil, true
}

// RemoteAddress returns the host and the path of a git address, or "" if the text is the name of a remote.
// It returns Unknown for an address that nod cannot read.
func RemoteAddress(text string) string {
	if strings.Contains(text, "::") { // git starts a program for such an address
		return Unknown
	}
	if strings.Contains(text, "://") {
		address := withoutUser(text)
		return strings.TrimSuffix(address[strings.Index(address, "://")+len("://"):], ".git")
	}
	if m := remoteFile.FindStringSubmatch(text); m != nil {
		return strings.TrimSuffix(m[1]+"/"+strings.TrimPrefix(text[strings.IndexByte(text, ':')+1:], "/"), ".git")
	}
	if strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") || strings.HasPrefix(text, "~") {
		return "the directory " + text
	}
	return ""
}

// registryImage returns the full name of a container image, with its registry.
func registryImage(image string) string {
	first, _, below := strings.Cut(image, "/")
	switch {
	case below && (strings.ContainsAny(first, ".:") || first == "localhost"):
		return image
	case below:
		return "docker.io/" + image
	}
	return "docker.io/library/" + image
}

// globalFlags are the flags before the subcommand whose next word is a value.
var globalFlags = map[string][]string{
	"git":    {"C", "c", "git-dir", "work-tree", "namespace", "exec-path", "config-env", "super-prefix", "attr-source"},
	"docker": {"c", "context", "H", "host", "l", "log-level", "config", "tlscacert", "tlscert", "tlskey"},
	"npm":    {"prefix", "C", "registry", "w", "workspace"}, "pnpm": {"C", "dir", "F", "filter"},
	"gh": {"R", "repo"}, "terraform": {}, "tofu": {}, "cargo": {"C", "config", "Z", "color", "manifest-path"},
}

// withoutGlobals returns a command without the flags before its subcommand: git -C x push becomes git push.
func withoutGlobals(argv []string) []string {
	takeValue, known := globalFlags[ProgramName(argv[0])]
	at := 1
	for known && at < len(argv) && strings.HasPrefix(argv[at], "-") && argv[at] != "--" {
		if slices.Contains(takeValue, strings.TrimLeft(argv[at], "-")) {
			at++
		}
		at++
	}
	if at == 1 || at >= len(argv) {
		return argv
	}
	return append([]string{argv[0]}, argv[at:]...)
}

// HasGlobals reports whether a command has flags before its subcommand.
func HasGlobals(argv []string) bool { return len(withoutGlobals(argv)) < len(argv) }

package commands

import (
	"net/url"
	"slices"
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
)

// Unknown is the name of a place that nod cannot tell.
const Unknown = "an unknown place"

// system says how a program names the system on which it acts.
type system struct {
	flags [][]string // each list has a word for people, then the flags whose values name the system
	inUse string     // the text for people if no flag names the system
}

// systems are the programs that act on another system. Their flags, or settings that nod does not see, choose
// the system.
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
	if name == "gh" {
		if names, s.inUse = onGitHub(args); len(names) > 0 {
			return names
		}
	}
	for _, flag := range s.flags {
		for _, value := range flagValues(args, flag[1:]...) {
			if value = orUnknown(withoutUser(value)); value != Unknown {
				value = flag[0] + " " + value
			}
			names = append(names, value)
		}
	}
	if base := databaseOf(name, args); base != "" && len(flagValues(args, "d", "dbname", "D", "database")) == 0 {
		names = append(names, "database "+base)
	}
	words := operands(args)
	for _, a := range words {
		if at := strings.Index(a, "://"); at <= 0 || strings.ContainsAny(a[:at], "= ") {
			continue
		}
		if address := orUnknown(withoutUser(a)); !slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, " "+address) }) {
			names = append(names, address)
		}
	}
	switch {
	case len(names) > 0:
	case slices.Contains(words, ""): // only the shell knows the word, which may be an address
		return []string{Unknown}
	default:
		return []string{s.inUse}
	}
	if name == "npm" || name == "pnpm" || name == "yarn" { // .npmrc may have another registry for the package
		names = append(names, s.inUse)
	}
	return names
}

// databaseFlags are the flags of database clients that have the next word as their value, and the long flags
// that have none.
var databaseFlags = map[string]struct{ value, plain []string }{
	"psql": {strings.Fields("c command d dbname f file F field-separator h host L log-file o output p port P pset R record-separator T table-attr U username v set variable"),
		strings.Fields("no-psqlrc quiet single-transaction tuples-only no-align csv html expanded echo-all echo-errors echo-queries no-password password list")},
	"mysql": {strings.Fields("D database e execute h host P port S socket u user"), strings.Fields("batch table silent force vertical html xml skip-column-names raw")},
}

// databaseOf returns the database that the only operand of a database client names. It returns "" if nod
// cannot tell, for example because of a flag that it does not know.
func databaseOf(name string, args []string) string {
	flags, known := databaseFlags[name]
	for _, a := range args {
		long, isLong := strings.CutPrefix(a, "--")
		long, _, with := strings.Cut(long, "=")
		known = known && (!isLong || with || slices.Contains(flags.value, long) || slices.Contains(flags.plain, long))
	}
	if all := operands(args, flags.value...); known && len(all) == 1 && IsPlain(all[0]) && !strings.ContainsAny(all[0], ":=/") {
		return all[0]
	}
	return ""
}

// onGitHub returns the repository that an operand of a gh command names, as text for people. If no operand
// names a repository, the result names is empty. The result inUse then describes what gh uses, unless a flag
// names a repository.
func onGitHub(args []string) (names []string, inUse string) {
	all := operands(args, "X", "method", "f", "F", "field", "raw-field", "hostname", "H", "header", "q", "jq", "t", "template", "input", "p", "preview", "cache", "R", "repo")
	if len(all) == 0 {
		return nil, "the repository in use"
	}
	switch all[0] {
	case "api":
		if in := strings.Split(strings.TrimPrefix(append(all, "")[1], "/"), "/"); len(in) > 2 && in[0] == "repos" && !strings.Contains(all[1], "://") {
			repo := in[1] + "/" + in[2]
			if in[1] == "" || in[2] == "" || strings.ContainsAny(repo, "{}") || slices.Contains(in, "..") {
				return []string{Unknown}, ""
			}
			return append([]string{"repository " + orUnknown(repo)}, flagValues(args, "hostname")...), ""
		}
		return nil, "the host in use"
	case "repo":
		if len(all) > 2 {
			return []string{"repository " + orUnknown(all[2])}, ""
		}
	case "gist", "auth", "ssh-key", "gpg-key", "codespace", "extension", "alias", "config", "project":
		return nil, "the account in use"
	}
	return nil, "the repository in use"
}

// flagValues returns the values of these flags. A flag with one letter may have its value in the same word.
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

// placeName matches a name, an address or a path that cannot be mistaken for a text of nod.
var placeName = lazyregexp.New(`^[A-Za-z0-9~][A-Za-z0-9._/:@~+=%[\]-]{0,99}$`)

// IsPlain reports whether a name cannot be mistaken for a text of nod.
func IsPlain(name string) bool { return placeName.MatchString(strings.TrimLeft(name, "/.")) }

// orUnknown returns a name, or Unknown for one that people could mistake for a text of nod.
func orUnknown(name string) string {
	if name == "" || !IsPlain(name) {
		return Unknown
	}
	return name
}

// withoutUser returns an address without the name and the password in it, and without its query. It
// returns Unknown for an address that nod cannot read.
func withoutUser(address string) string {
	if !strings.Contains(address, "://") {
		return address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || strings.Contains(u.RawQuery, "host") {
		return Unknown
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/")
}

// DefaultRemote is the name of the repository to which git pushes if the command names none.
const DefaultRemote = "git's default remote"

// remoteFlags are flags of git, with a value and without one, that do not change the repository with which a
// command exchanges commits. Any other flag may have the next word as its value, or choose other repositories.
var remoteFlags = struct{ value, plain []string }{
	strings.Fields("-o --push-option --receive-pack --exec --upload-pack --depth -j --jobs -s --strategy -X --strategy-option --deepen --shallow-since --refmap --server-option --recurse-submodules"),
	strings.Fields("-u --set-upstream -f --force --force-with-lease --force-if-includes -v --verbose -q --quiet -n --dry-run --tags --no-tags --follow-tags --no-verify --verify --atomic --thin " +
		"--porcelain --progress --no-progress --signed -d --delete --prune -p --mirror -t --ff-only --no-ff --ff --rebase -r --no-rebase --no-edit --edit --autostash --no-autostash --stat --squash --no-commit --unshallow --heads --refs --exit-code -h -4 --ipv4 -6 --ipv6"),
}

// Remote returns the repository with which a git command exchanges commits, as the command names it, and the
// words after its name. The repository is DefaultRemote if the command names none, and Unknown if nod cannot
// tell. For any other command, ok is false.
func Remote(argv []string) (remote string, rest []string, ok bool) {
	argv = withoutGlobals(argv)
	if ProgramName(argv[0]) != "git" || len(argv) < 2 || !slices.Contains([]string{"push", "pull", "fetch", "ls-remote"}, argv[1]) {
		return "", nil, false
	}
	args, repo := argv[2:], DefaultRemote
	for i := 0; i < len(args); i++ {
		a := args[i]
		flag, value, with := strings.Cut(a, "=")
		switch {
		case a == "--" && i+1 < len(args):
			return args[i+1], args[i+2:], true
		case !strings.HasPrefix(a, "-"):
			return a, args[i+1:], true
		case flag == "--repo" && with && argv[1] == "push":
			repo = value
		case with && (slices.Contains(remoteFlags.value, flag) || slices.Contains(remoteFlags.plain, flag)), slices.Contains(remoteFlags.plain, a), a == "--all" && argv[1] == "push":
		case slices.Contains(remoteFlags.value, a):
			i++
		case !strings.HasPrefix(a, "--") && len(a) > 2 && strings.Trim(a[1:], "ufvqndpt46") == "":
		default:
			return Unknown, nil, true
		}
	}
	return repo, nil, true
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
	if image = orUnknown(image); image == Unknown || strings.HasPrefix(image, "/") {
		return Unknown
	}
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

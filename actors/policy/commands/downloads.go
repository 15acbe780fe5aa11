package commands

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// The registries from which package runners download.
const (
	npmRegistry    = "the npm registry"
	pythonRegistry = "the Python package index"
)

// downloadedCode begins the reason of a command that runs code from another machine.
const downloadedCode = "runs code downloaded from "

// FromDownload returns the harm of running code that was downloaded from a place. The risk is high, as for
// all code that a line runs and does not contain.
func FromDownload(place string) Harm { return Harm{schemas.RiskHigh, downloadedCode + place} }

// packageRunners are the commands that download a package and run it. For each command, they have its
// registry, and its flags whose value is the next word.
var packageRunners = []struct {
	words    []string
	registry string
	values   []string
}{
	{[]string{"npx"}, npmRegistry, []string{"p", "package", "c", "call"}},
	{[]string{"bunx"}, npmRegistry, []string{"p", "package"}},
	{[]string{"pnpm", "dlx"}, npmRegistry, []string{"package"}},
	{[]string{"yarn", "dlx"}, npmRegistry, []string{"p", "package"}},
	{[]string{"bun", "x"}, npmRegistry, []string{"p", "package"}},
	{[]string{"npm", "exec"}, npmRegistry, []string{"package", "c", "call"}},
	{[]string{"npm", "x"}, npmRegistry, []string{"package", "c", "call"}},
	{[]string{"npm", "create"}, npmRegistry, nil},
	{[]string{"npm", "init"}, npmRegistry, nil},
	{[]string{"yarn", "create"}, npmRegistry, nil},
	{[]string{"pnpm", "create"}, npmRegistry, nil},
	{[]string{"bun", "create"}, npmRegistry, nil},
	{[]string{"uvx"}, pythonRegistry, []string{"from", "with", "p", "python", "index", "index-url"}},
	{[]string{"uv", "tool", "run"}, pythonRegistry, []string{"from", "with", "p", "python", "index", "index-url"}},
	{[]string{"pipx", "run"}, pythonRegistry, []string{"spec", "python", "index-url", "pip-args"}},
}

// harmOfDownload returns the harm of a command that downloads code and runs it. For any other command, ok is
// false, even for a package manager that installs from its registry, because this counts as an installation.
func harmOfDownload(name string, args []string) (h Harm, ok bool) {
	if len(args) == 0 || !slices.Contains(downloaders, name) {
		return Harm{}, false
	}
	from := cmp.Or(runsPackage(name, args), installsFrom(name, args))
	return Harm{schemas.RiskMedium, downloadedCode + from}, from != ""
}

// downloaders are the programs that harmOfDownload knows.
var downloaders = strings.Fields("npx bunx npm pnpm yarn bun uvx uv pipx go deno pip pip3 python python3 poetry cargo gem brew composer apt dpkg")

// runsPackage returns the place from which a command downloads the package that it runs, or "".
func runsPackage(name string, args []string) string {
	argv := append([]string{name}, args...)
	for _, r := range packageRunners {
		if len(argv) < len(r.words) || !slices.Equal(argv[:len(r.words)], r.words) {
			continue
		}
		rest := argv[len(r.words):]
		packages := append(flagValues(rest, "p", "package", "from", "spec"), operands(rest, r.values...)...)
		switch {
		case len(packages) == 0, slices.Contains(rest, "--no-install"), slices.Contains(rest, "--no"), slices.Contains(rest, "--offline"):
			return ""
		case isLocal(packages[0]) || r.registry == npmRegistry && r.words[len(r.words)-1] != "create" && IsRunner("npx", packages[0]): // a known runner, such as jest, is usually installed in the project
			return ""
		}
		if place := placeOfPackage(packages[0], false); place != "" {
			return place
		}
		return r.registry
	}
	switch {
	case name == "go" && len(args) > 1 && args[0] == "run":
		if module, _, versioned := strings.Cut(append(operands(args[1:], "C", "exec", "mod", "modfile", "overlay", "p", "tags", "ldflags", "gcflags", "asmflags"), "")[0], "@"); versioned {
			host, _, _ := strings.Cut(module, "/")
			return orUnknown(host)
		}
	case name == "deno" && len(args) > 1 && (args[0] == "run" || args[0] == "install" || args[0] == "x"):
		switch a := append(operands(args[1:], "config", "import-map", "lock", "c"), "")[0]; {
		case strings.HasPrefix(a, "npm:"):
			return npmRegistry
		case strings.HasPrefix(a, "jsr:"):
			return "jsr.io"
		default:
			return placeOfPackage(a, false)
		}
	}
	return ""
}

// installers are the commands that run code of the packages that they install, such as npm's install scripts.
var installers = []struct {
	words     []string
	shorthand bool // user/repo names a repository at GitHub
}{
	{[]string{"npm", "install"}, true}, {[]string{"npm", "i"}, true}, {[]string{"npm", "add"}, true}, {[]string{"pnpm", "add"}, true}, {[]string{"pnpm", "install"}, true}, {[]string{"pnpm", "i"}, true},
	{[]string{"yarn", "add"}, true}, {[]string{"bun", "add"}, true}, {[]string{"bun", "install"}, true},
	{[]string{"pip", "install"}, false}, {[]string{"pip3", "install"}, false}, {[]string{"python", "-m", "pip", "install"}, false}, {[]string{"python3", "-m", "pip", "install"}, false}, {[]string{"uv", "pip", "install"}, false},
	{[]string{"uv", "add"}, false}, {[]string{"uv", "tool", "install"}, false}, {[]string{"uv", "run"}, false}, {[]string{"pipx", "install"}, false}, {[]string{"poetry", "add"}, false},
	{[]string{"cargo", "install"}, false}, {[]string{"gem", "install"}, false}, {[]string{"brew", "install"}, false}, {[]string{"composer", "require"}, false}, {[]string{"apt", "install"}, false}, {[]string{"dpkg", "-i"}, false},
}

// installsFrom returns the host from which a package manager installs something, or "" if no word names a
// host.
func installsFrom(name string, args []string) string {
	argv := append([]string{name}, args...)
	for _, in := range installers {
		if len(argv) <= len(in.words) || !slices.Equal(argv[:len(in.words)], in.words) {
			continue
		}
		for _, a := range argv[len(in.words):] {
			if _, value, with := strings.Cut(a, "="); with && strings.HasPrefix(a, "-") {
				a = value
			}
			if _, at, with := strings.Cut(a, "@ "); with { // pip accepts name @ https://…
				a = strings.TrimSpace(at)
			}
			if place := placeOfPackage(a, in.shorthand); place != "" {
				return place
			}
		}
	}
	return ""
}

func isLocal(a string) bool {
	return strings.HasPrefix(a, ".") || strings.HasPrefix(a, "/") || strings.HasPrefix(a, "~") || strings.HasPrefix(a, "file:")
}

var (
	shortRepository = lazyregexp.New(`^[A-Za-z0-9][\w.-]*/[\w.-]+(?:#.*)?$`)
	packageHosts    = map[string]string{"github": "github.com", "gitlab": "gitlab.com", "bitbucket": "bitbucket.org", "gist": "gist.github.com"}
)

// placeOfPackage returns the host of a package that is named by an address, or "" for any other package.
func placeOfPackage(a string, shorthand bool) string {
	if isLocal(a) || strings.HasPrefix(a, "-") {
		return ""
	}
	if strings.Contains(a, "://") {
		at := strings.LastIndexAny(a[:strings.Index(a, "://")], "@ ")
		u, err := url.Parse(a[at+1:])
		switch {
		case err != nil:
			return Unknown
		case strings.EqualFold(u.Scheme, "file"):
			return ""
		}
		return orUnknown(u.Hostname())
	}
	if scheme, _, with := strings.Cut(a, ":"); with && packageHosts[scheme] != "" {
		return packageHosts[scheme]
	}
	if host, _, with := strings.Cut(strings.TrimPrefix(a, "git@"), ":"); with && strings.HasPrefix(a, "git@") {
		return orUnknown(host)
	}
	if shorthand && shortRepository.MatchString(a) {
		return "github.com"
	}
	return ""
}

// DownloadedFiles returns the files in which curl or wget stores its downloads.
func DownloadedFiles(argv []string) (files []string) {
	name, args := ProgramName(argv[0]), argv[1:]
	switch name {
	case "curl":
		files = flagValues(args, "o", "output")
		if hasFlag(args, "O", "remote-name", "remote-name-all") {
			files = append(files, lastSegments(args, valueFlags[name])...)
		}
	case "wget":
		if files = flagValues(args, "O", "output-document"); len(files) == 0 {
			files = lastSegments(args, valueFlags[name])
		}
	}
	return slices.DeleteFunc(files, func(f string) bool { return f == "-" || f == "" || strings.HasPrefix(f, "/dev/") })
}

func lastSegments(args, takeValue []string) (all []string) {
	for _, a := range operands(args, takeValue...) {
		a, _, _ = strings.Cut(a, "?")
		all = append(all, a[strings.LastIndexByte(a, '/')+1:])
	}
	return all
}

// ScriptOf returns the file that a command runs as a script or as a program of the project, or "".
func ScriptOf(argv []string) string {
	name := ProgramName(argv[0])
	if known := Entry(name); known.Interprets && LanguageOf(name) == ShellCode && name != "ssh" && name != "su" || name == "." || name == "source" || LanguageOf(name) == ProgramCode {
		if all := operands(argv[1:], "o", "O", "W", "X"); len(all) > 0 && !(known.inline != "" && slices.Contains(argv[1:], known.inline)) {
			return all[0]
		}
		return ""
	}
	if strings.Contains(argv[0], "/") {
		return argv[0]
	}
	return ""
}

// Uploads returns the files that an HTTP client, such as curl, sends, as the command's words name them. The
// file "-" is the command's input.
func Uploads(argv []string) (files []string) {
	args := argv[1:]
	switch ProgramName(argv[0]) {
	case "curl":
		files = flagValues(args, "T", "upload-file")
		for _, v := range flagValues(args, "d", "data", "data-ascii", "data-binary", "data-urlencode", "json") {
			if at := strings.IndexByte(v, '@'); at == 0 || at > 0 && !strings.ContainsAny(v[:at], " ={\"") {
				files = append(files, v[at+1:])
			}
		}
		for _, v := range flagValues(args, "F", "form") {
			if _, value, _ := strings.Cut(v, "="); strings.HasPrefix(value, "@") || strings.HasPrefix(value, "<") {
				file, _, _ := strings.Cut(value[1:], ";")
				files = append(files, file)
			}
		}
	case "wget":
		files = flagValues(args, "post-file", "body-file")
	case "http", "https", "xh":
		for _, a := range operands(args) {
			if field, file, with := strings.Cut(a, "@"); with && !strings.Contains(field, "/") && !strings.Contains(field, ":") {
				files = append(files, file)
			}
		}
	}
	return slices.DeleteFunc(files, func(f string) bool { return f == "" })
}

package commands

import (
	"net/url"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// Objects returns the words of a command that the harm h affects: paths of files, or names such as the
// host of an address. The words are shown to people. Other words of the command may also be harmful.
func Objects(argv []string, h Harm) (files, names []string) {
	name, args := ProgramName(argv[0]), argv[1:]
	switch {
	case h == copiesRemotely:
		return nil, append(remoteFiles(args), hosts(name, args)...)
	case h == installs:
		return nil, hosts(name, args)
	case h == usesNetwork, h == runsRemotely, h == publishes, h == changesSystems, h == deletesElsewhere, h == overwritesOthers:
		return nil, placesOf(name, argv)
	case h == opensMachine, h == opensDirectory, h == controlsContainers:
		return Mounted(argv), nil
	}
	switch name {
	case "rm", "rmdir", "unlink", "trash", "shred", "srm", "truncate", "mkdir", "touch", "tee", "unzip":
		return operands(args, valueFlags[name]...), nil
	case "git":
		if plain := withoutGlobals(argv); len(plain) > 1 {
			return pathsOfGit(plain[1:]), nil
		}
	case "cp", "mv", "ln", "install", "rsync":
		if all := operands(args, valueFlags[name]...); len(all) > 1 && !slices.ContainsFunc(args, func(a string) bool { return a == "-t" || strings.HasPrefix(a, "--target-directory") }) {
			return all[len(all)-1:], nil
		}
	case "chmod", "chown", "chgrp":
		if all := operands(args); len(all) > 1 {
			return all[1:], nil
		}
	case "dd":
		for _, a := range args {
			if out, ok := strings.CutPrefix(a, "of="); ok {
				files = append(files, out)
			}
		}
	case "sed":
		if all := operands(args); len(all) > 1 && !slices.ContainsFunc(args, func(a string) bool { return a == "-e" || a == "-f" }) {
			return all[1:], nil
		}
	case "find":
		for _, a := range args {
			if strings.HasPrefix(a, "-") || a == "(" || a == "!" {
				break
			}
			files = append(files, a)
		}
		if len(files) == 0 {
			files = []string{"."}
		}
	}
	return files, nil
}

// placesOf returns the names of the places on other machines on which a command acts.
func placesOf(name string, argv []string) []string {
	if remote, rest, ok := Remote(argv); ok {
		return append([]string{orAddress(remote)}, rest...)
	}
	plain := withoutGlobals(argv)
	if len(plain) > 2 && plain[1] == "image" {
		plain = plain[1:]
	}
	if (name == "docker" || name == "podman") && len(plain) > 1 && plain[1] == "push" {
		var images []string
		for _, image := range operands(plain[2:]) {
			images = append(images, registryImage(image))
		}
		return images
	}
	var all []string
	switch name {
	case "openssl":
		all = flagValues(argv[1:], "connect")
	case "rclone", "mail", "mailx", "mutt", "sendmail":
		all = slices.DeleteFunc(operands(argv[1:], "s", "a", "c", "b"), func(a string) bool { return !strings.ContainsAny(a, ":@") })
	default:
		return systemNames(name, argv[1:])
	}
	for i, a := range all {
		all[i] = orUnknown(a)
	}
	return all
}

// orAddress returns the name of a git remote or, if the remote is an address, the address's host and path.
func orAddress(remote string) string {
	if remote == "" {
		return Unknown
	}
	if at := RemoteAddress(remote); at != "" && IsPlain(remote) {
		return at
	}
	if remote == DefaultRemote {
		return remote
	}
	return orUnknown(remote)
}

var sshValues = strings.Split("bcDEeFIiJLlmOopQRSWwBP", "")

// valueFlags are the flags, by program, whose next word is a value and no file.
var valueFlags = map[string][]string{
	"curl": {"d", "data", "data-ascii", "data-binary", "data-raw", "data-urlencode", "json", "F", "form", "form-string", "T", "upload-file", "H", "header", "b", "cookie", "c", "cookie-jar",
		"o", "output", "output-dir", "X", "request", "u", "user", "A", "user-agent", "e", "referer", "m", "max-time", "connect-timeout", "w", "write-out", "E", "cert", "key", "cacert", "capath", "retry", "retry-delay", "D", "dump-header", "r", "range", "limit-rate", "Y", "y", "z", "C", "t", "Q",
		"resolve", "connect-to", "x", "proxy", "preproxy", "socks4", "socks4a", "socks5", "socks5-hostname", "unix-socket", "abstract-unix-socket", "K", "config", "doh-url"},
	"wget": {"O", "output-document", "o", "output-file", "P", "directory-prefix", "header", "post-data", "post-file", "body-data", "body-file", "method", "U", "user-agent", "T", "timeout", "t", "tries", "user", "password", "l", "level", "A", "R", "D", "a", "i"},
	"ssh":  sshValues, "scp": sshValues, "sftp": sshValues,
	"nc": {"p", "w", "s", "i", "q", "X", "x", "e", "c", "I", "O", "T", "proxy", "proxy-type"}, "ncat": {"p", "w", "s", "i", "e", "c", "proxy", "proxy-type", "exec", "sh-exec", "lua-exec"},
	"truncate": {"s", "r", "size", "reference"}, "mkdir": {"m", "mode"}, "touch": {"d", "t", "r", "date", "reference"},
	"unzip": {"d", "P", "x"}, "shred": {"n", "s", "iterations", "size"}, "install": {"m", "o", "g", "mode", "owner", "group"},
	"rsync": {"e", "rsh", "exclude", "include", "filter"}, "cp": {"S"}, "mv": {"S"}, "ln": {"S"},
}

// operands returns the words that are neither flags nor values of the flags in takeValue.
func operands(args []string, takeValue ...string) (all []string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch flag := strings.TrimLeft(a, "-"); {
		case a == "--":
			return append(all, args[i+1:]...)
		case !strings.HasPrefix(a, "-") || a == "-":
			all = append(all, a)
		case slices.Contains(takeValue, flag), !strings.HasPrefix(a, "--") && slices.Contains(takeValue, flag[max(0, len(flag)-1):]):
			i++
		}
	}
	return all
}

// hosts returns the hosts to which a command that uses the network connects. Unknown is among them if a word
// of the command may name a further host that nod cannot tell.
func hosts(name string, args []string) (all []string) {
	switch name {
	case "ssh", "mosh", "sftp", "telnet", "ping":
		if all = operands(args, sshValues...); len(all) == 0 {
			return nil
		}
		host := all[0]
		if at := strings.Index(host, "://"); at > 0 {
			host = host[at+len("://"):]
		}
		return []string{orUnknown(host[strings.LastIndexByte(host, '@')+1:])}
	case "nc", "ncat", "ftp":
		if all = operands(args, valueFlags[name]...); len(all) == 0 || all[0] == "" {
			return nil
		}
		return []string{orUnknown(all[0])}
	}
	for _, a := range args {
		if at := strings.Index(a, "://"); at > 0 {
			if u, err := url.Parse(a[strings.LastIndexAny(a[:at], "= ")+1:]); err == nil && u.Host != "" {
				all = append(all, u.Host)
			}
		}
	}
	if name != "curl" && name != "wget" {
		return all
	}
	hidden := false
	for _, a := range operands(args, valueFlags[name]...) {
		host, _, _ := strings.Cut(a, "/")
		switch host = host[strings.LastIndexByte(host, '@')+1:]; {
		case strings.Contains(a, "://"):
			hidden = hidden || withoutUser(a) == Unknown
		case bareHost.MatchString(host):
			all = append(all, host)
		default:
			hidden = true
		}
	}
	if hidden {
		all = append(all, Unknown)
	}
	return all
}

// bareHost matches the host of an address without a scheme, such as x.test:80.
var bareHost = lazyregexp.New(`^(localhost|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+)(:[0-9]+)?$`)

// remoteFile matches a file on another machine, as scp names it: ann@host:path.
var remoteFile = lazyregexp.New(`^(?:[^/:@]+@)?([^/:@]+):`)

// remoteFiles returns the hosts of the words that name files on other machines.
func remoteFiles(args []string) (all []string) {
	for _, a := range operands(args, "c", "D", "F", "i", "J", "l", "o", "P", "S", "X") {
		if m := remoteFile.FindStringSubmatch(a); m != nil && !strings.Contains(a, "://") && !slices.Contains(all, m[1]) {
			all = append(all, m[1])
		}
	}
	return all
}

// outsideWords are the words that make an installer write outside the project.
var outsideWords = []string{"--user", "-g", "--global", "--location=global", "--system", "--break-system-packages"}

// homeInstallers and systemInstallers are the programs that always install outside the project.
var (
	homeInstallers   = []string{"cargo install", "go install", "gem install", "pipx"}
	systemInstallers = []string{"apt", "apt-get", "brew", "dnf", "yum", "pacman", "apk", "snap"}
)

// OutsideOf describes a place outside the project that a command with these harms changes although no word
// names its path, such as "your crontab". If there is no such place, OutsideOf returns "".
func OutsideOf(argv []string, harms []Harm) string {
	name, args := ProgramName(argv[0]), argv[1:]
	first := name
	if len(args) > 0 {
		first += " " + args[0]
	}
	switch {
	case name == "crontab" && slices.Contains(args, "-l"):
		return ""
	case name == "crontab":
		return "your crontab"
	case slices.Contains(systemInstallers, name):
		return "the machine's software"
	case slices.Contains(homeInstallers, name), slices.Contains(homeInstallers, first):
		return "your own programs"
	case slices.Contains(harms, installs) && slices.ContainsFunc(args, func(a string) bool { return slices.Contains(outsideWords, a) }):
		return "packages for all projects"
	case first == "git config" && slices.ContainsFunc(args, func(a string) bool { return a == "--global" || a == "--system" }):
		return "git's settings for all projects"
	}
	return ""
}

// buildOutputs are the names of directories that builds and tests can make again.
var buildOutputs = []string{
	"build", "dist", "out", "target", "node_modules", "coverage", "htmlcov", "__pycache__", ".pytest_cache", ".mypy_cache",
	".ruff_cache", ".next", ".nuxt", ".turbo", ".parcel-cache", ".gradle", ".tox", ".nyc_output", "cmake-build-debug",
	"cmake-build-release", "DerivedData",
}

// IsBuildOutput reports whether a path in a project leads to a directory, or into one, that usually holds only
// files that a build can make again. A pattern must begin below such a directory.
func IsBuildOutput(rel string) bool {
	segs := strings.Split(strings.Trim(rel, "/"), "/")
	at := slices.IndexFunc(segs, func(seg string) bool { return pathname.IsGlob(seg) || slices.Contains(buildOutputs, seg) })
	return at >= 0 && !pathname.IsGlob(segs[at]) && !slices.Contains(segs, ".git") // a repository in build may hold work
}

// IsDeletion reports whether the harm is a deletion of named files.
func (h Harm) IsDeletion() bool {
	return slices.Contains([]Harm{deletes, deletesUnasked, deletesDirectories, deletesFound, deletesAllBelow}, h)
}

// IsInlineCode reports whether the harm is code among the words of a command.
func (h Harm) IsInlineCode() bool { return h == runsInlineCode }

// GeneralRank returns 1 for a reason that only says that code runs, and 0 for any other reason.
func GeneralRank(why string) int {
	if why == runsInlineCode.Why || why == runsInput.Why || why == runsProgram.Why {
		return 1
	}
	return 0
}

// IsScript reports whether the harm is a script that the command runs.
func (h Harm) IsScript() bool { return h == runsScript }

// Downloads reports whether a command with these harms uses the network and may thus fetch code.
func Downloads(harms []Harm) bool { return slices.Contains(harms, usesNetwork) }

// Input tells from where, besides its words, a command may get code.
type Input struct {
	Piped      bool // the command reads the output of another command
	Computed   bool // a word is the output of another command
	Downloaded bool // another command of the line uses the network
	Shown      bool // the command reads only a here-document of the line, in which the shell replaces nothing
}

// DownloadedScript describes code that a line downloads and runs at once.
const DownloadedScript = "the downloaded script"

// Unseen describes code that a command with these harms runs and that its words do not contain, such as "the script
// deploy.sh". If there is no such code, Unseen returns "". The code of the project's own build or
// tests does not count.
func Unseen(argv []string, harms []Harm, in Input) string {
	name := ProgramName(argv[0])
	known := Entry(name)
	all := slices.DeleteFunc(operands(argv[1:], "m"), func(a string) bool { return a == "-" })
	inline := known.inline != "" && slices.Contains(argv[1:], known.inline) || known.Interprets && slices.Contains(harms, runsInlineCode)
	switch {
	case inline && !in.Computed, in.Shown && !in.Piped:
		return ""
	case known.RunsInput() && (inline || slices.Contains(harms, runsInput) || in.Piped && len(all) == 0), known.RunsInput() && in.Computed && in.Downloaded && len(all) > 0 && all[0] == "":
		if in.Downloaded {
			return DownloadedScript
		}
		return "the input that runs as code"
	case known.RunsInput() && (known.Interprets || known.inline != "") && len(all) > 0, (name == "." || name == "source") && len(all) > 0:
		return "the script " + all[0]
	case name == "npx", name == "bunx", name == "uvx", name == "pipx":
		all = operands(argv[1:], "p", "package", "from", "with")
		if name == "pipx" && len(all) > 0 && all[0] == "run" {
			all = all[1:]
		}
		if len(all) > 0 {
			return "the code of the package " + all[0]
		}
	}
	return ""
}

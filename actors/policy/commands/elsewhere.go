package commands

import (
	"slices"
	"strings"
)

// reroutes are the flags, by program, that make the program connect to another place than its words name.
var reroutes = map[string]struct {
	letters string   // the flags with one letter
	long    []string // the long flags
}{
	"curl": {"xK", strings.Fields("resolve connect-to proxy preproxy proxy1.0 socks4 socks4a socks5 socks5-hostname unix-socket abstract-unix-socket config doh-url alt-svc dns-servers variable")},
	"wget": {"ie", strings.Fields("input-file execute config use-proxy proxy base")},
	"http": {"", strings.Fields("proxy")},
	"nc":   {"xXUec", strings.Fields("proxy proxy-type exec sh-exec lua-exec unixsock")}, "ncat": {"Uec", strings.Fields("proxy proxy-type exec sh-exec lua-exec unixsock")},
	"ssh": {"JFWS", nil}, "scp": {"JFSD", nil}, "sftp": {"JFSDs", nil}, "mosh": {"", strings.Fields("ssh server")},
	"openssl": {"", strings.Fields("proxy unix")},
}

// mildOptions are the settings of ssh that do not change the machine to which ssh connects.
var mildOptions = strings.Fields("stricthostkeychecking connecttimeout batchmode userknownhostsfile loglevel port user identityfile identitiesonly " +
	"serveraliveinterval serveralivecountmax passwordauthentication preferredauthentications forwardagent requesttty addkeystoagent compression")

// MayGoElsewhere reports whether a command may act on another place than its words seem to name.
func MayGoElsewhere(argv []string) bool {
	name, args := ProgramName(argv[0]), argv[1:]
	if IsElsewhere(argv[0]) {
		return true
	}
	switch name {
	case "ssh", "scp", "sftp":
		for _, option := range flagValues(args, "o") {
			if key := strings.FieldsFunc(strings.ToLower(option), func(r rune) bool { return r == '=' || r == ' ' }); len(key) == 0 || !slices.Contains(mildOptions, key[0]) {
				return true
			}
		}
	case "rsync":
		for _, shell := range flagValues(args, "e", "rsh") {
			words := strings.Fields(shell)
			if len(words) == 0 || MayGoElsewhere(words) || words[0] != "ssh" {
				return true
			}
		}
	}
	for _, a := range args {
		if a == "--" {
			break
		}
		if strings.HasPrefix(a, "-") && reroutesBy(name, a) {
			return true
		}
	}
	s, known := systems[name]
	return known && s.isUncertain(args)
}

// IsElsewhere reports whether a command's first word is the path of a program outside the directories of
// the system's programs.
func IsElsewhere(program string) bool {
	at := strings.LastIndexByte(program, '/')
	return at >= 0 && !slices.Contains([]string{"/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin"}, program[:at])
}

// reroutesBy reports whether a flag, which may be a group of letters or the beginning of a long name, makes a
// program connect to another place.
func reroutesBy(name, flag string) bool {
	by, known := reroutes[name]
	if !known {
		return false
	}
	long, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
	if strings.HasPrefix(flag, "--") || name == "openssl" {
		return strings.HasPrefix(long, "expand-") || len(long) > 1 && slices.ContainsFunc(by.long, func(l string) bool { return strings.HasPrefix(l, long) })
	}
	for i := 1; i < len(flag); i++ {
		if strings.IndexByte(by.letters, flag[i]) >= 0 {
			return true
		}
		if TakesValue(name, "-"+flag[i:i+1]) {
			return false // the rest of the word is the flag's value
		}
	}
	return false
}

// loneFlags are common flags without a value. The word after any other flag may be the value of that flag,
// even if the word looks like a flag.
var loneFlags = strings.Fields("--force --wait --all --now --yes -y --recursive --quiet -q --auto-approve -auto-approve --dry-run --debug --verbose -v -A --all-namespaces -it -ti -t " +
	"--atomic --install --delete-branch --squash --merge --rebase --admin --no-paginate --no-cli-pager --public --non-interactive --no-input -w -a")

// isUncertain reports whether nod cannot tell the system that a program's flags name: a flag may be the
// value of the flag before it, or may be shortened.
func (s system) isUncertain(args []string) bool {
	for i, a := range args {
		if a == "--" {
			return false
		}
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if !strings.HasPrefix(a, "-") || name == "" {
			continue
		}
		for _, flag := range s.flags {
			for _, f := range flag[1:] {
				whole := name == f || len(f) == 1 && !strings.HasPrefix(a, "--") && name[:1] == f
				if whole && i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=") && !slices.Contains(loneFlags, args[i-1]) {
					return true
				}
				if len(name) > 2 && len(name) < len(f) && strings.HasPrefix(a, "--") && strings.HasPrefix(f, name) {
					return true
				}
			}
		}
	}
	return false
}

// TakesValue reports whether a flag of a program has the next word as its value.
func TakesValue(name, flag string) bool {
	name, flag = ProgramName(name), strings.TrimLeft(flag, "-")
	if slices.Contains(valueFlags[name], flag) {
		return true
	}
	return slices.ContainsFunc(systems[name].flags, func(f []string) bool { return slices.Contains(f[1:], flag) })
}

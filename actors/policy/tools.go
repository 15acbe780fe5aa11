package policy

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nodbus/nod/schemas"
)

// kind classifies a tool.
type kind int

const (
	kindUnknown kind = iota
	kindShell
	kindFile   // reads a file
	kindSearch // searches files
	kindEdit   // writes a file
	kindWeb
	kindNotes // the agent's own bookkeeping
)

// tool is a tool under the name that rules use.
type tool struct {
	name string
	kind kind
}

// toolTable holds the tools of the agents that nod knows; every other tool asks.
var toolTable = map[string]tool{
	"Bash": {"Bash", kindShell}, "bash": {"Bash", kindShell}, "shell": {"Bash", kindShell}, "exec_command": {"Bash", kindShell},
	"local_shell": {"Bash", kindShell}, "run_shell_command": {"Bash", kindShell}, "container.exec": {"Bash", kindShell},
	"Read": {"Read", kindFile}, "read": {"Read", kindFile}, "read_file": {"Read", kindFile}, "view": {"Read", kindFile},
	"Glob": {"Glob", kindSearch}, "glob": {"Glob", kindSearch}, "LS": {"Glob", kindSearch}, "list": {"Glob", kindSearch}, "list_directory": {"Glob", kindSearch},
	"Grep": {"Grep", kindSearch}, "grep": {"Grep", kindSearch}, "rg": {"Grep", kindSearch}, "search_file_content": {"Grep", kindSearch}, "grep_search": {"Grep", kindSearch},
	"Write": {"Write", kindEdit}, "write": {"Write", kindEdit}, "write_file": {"Write", kindEdit}, "create": {"Write", kindEdit},
	"Edit": {"Edit", kindEdit}, "edit": {"Edit", kindEdit}, "MultiEdit": {"Edit", kindEdit}, "replace": {"Edit", kindEdit},
	"str_replace": {"Edit", kindEdit}, "apply_patch": {"Edit", kindEdit}, "NotebookEdit": {"NotebookEdit", kindEdit},
	"WebFetch": {"WebFetch", kindWeb}, "webfetch": {"WebFetch", kindWeb}, "web_fetch": {"WebFetch", kindWeb},
	"WebSearch": {"WebSearch", kindWeb}, "web_search": {"WebSearch", kindWeb}, "google_web_search": {"WebSearch", kindWeb},
	"TodoWrite": {"TodoWrite", kindNotes}, "TodoRead": {"TodoRead", kindNotes}, "todowrite": {"TodoWrite", kindNotes}, "todoread": {"TodoRead", kindNotes},
	"update_plan": {"update_plan", kindNotes}, "TaskCreate": {"TaskCreate", kindNotes}, "TaskUpdate": {"TaskUpdate", kindNotes},
	"TaskGet": {"TaskGet", kindNotes}, "TaskList": {"TaskList", kindNotes}, "TaskOutput": {"TaskOutput", kindNotes}, "ToolSearch": {"ToolSearch", kindNotes},
}

// hasEffect reports whether the effect that the host states is one that a tool of this
// kind has. With another effect, it is not the tool that nod knows.
func (t tool) hasEffect(a schemas.ActionType) bool {
	if a == "" || a == schemas.ActionOther {
		return true
	}
	switch t.kind {
	case kindShell:
		return a == schemas.ActionCommand
	case kindFile, kindSearch:
		return a == schemas.ActionFileRead
	case kindEdit:
		return a == schemas.ActionFileWrite
	case kindWeb:
		return a == schemas.ActionNetwork
	}
	return true
}

func canonicalTool(name string) tool {
	if t, ok := toolTable[name]; ok {
		return t
	}
	return tool{name: name}
}

// shellKeys are the fields of shell tools that do not change what runs.
var shellKeys = map[string]bool{
	"command": true, "cmd": true, "description": true, "timeout": true, "timeout_ms": true, "cwd": true, "workdir": true, "directory": true,
	"dir_path": true, "yield_time_ms": true, "max_output_tokens": true, "run_in_background": true, "is_background": true, "login": true,
	"tty": true, "justification": true, "explanation": true, "initial_wait": true, "mode": true, "sessionId": true,
}

// command returns the text that a shell tool runs and its directory, or the reason why
// they are unknown.
func (in input) command() (src, dir string, why string) {
	if k := firstUnlisted(in, func(name string) bool { return shellKeys[name] }); k != "" {
		return "", "", "its input has a field that nod does not know, " + k
	}
	dirs := 0
	for _, k := range []string{"cwd", "workdir", "directory", "dir_path"} {
		d, ok := in.text(k)
		if !ok && in[k] != nil && string(in[k]) != "null" {
			return "", "", "its directory cannot be read"
		}
		if d != "" {
			dir = d
			dirs++
		}
	}
	if in["cwd"] != nil && dirs == 2 {
		// The host adds the session's directory to the tool's own.
		dirs, dir = 1, ""
		for _, k := range []string{"workdir", "directory", "dir_path"} {
			if d, ok := in.text(k); ok && d != "" {
				dir = d
			}
		}
	}
	if dirs > 1 {
		return "", "", "its input names several directories"
	}
	if src, ok := in.text("command", "cmd"); ok {
		return src, dir, ""
	}
	raw := in["command"]
	if raw == nil {
		raw = in["cmd"]
	}
	var argv []string
	if json.Unmarshal(raw, &argv) == nil && len(argv) == 3 && (argv[0] == "bash" || argv[0] == "zsh") && (argv[1] == "-c" || argv[1] == "-lc") {
		return argv[2], dir, ""
	}
	return "", dir, "its command cannot be read"
}

// privateDomains end the names of this machine and its network. sharedAddresses lie
// between a provider and its customers; private networks use them too.
var (
	privateDomains  = []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"}
	sharedAddresses = netip.MustParsePrefix("100.64.0.0/10")
)

// privateURL returns the reason why a URL is not on the open web; "" if it is.
func privateURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return "is not a web address"
	}
	if u.User != nil {
		return "its address holds a login"
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if strings.IndexFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return "its address holds letters that may stand for others"
	}
	if !strings.Contains(host, ".") || slices.ContainsFunc(privateDomains, func(d string) bool { return strings.HasSuffix(host, d) }) {
		return "reaches this machine or its network"
	}
	if ip, err := netip.ParseAddr(host); err == nil && (!ip.IsGlobalUnicast() || ip.IsPrivate() || ip.Is6() || sharedAddresses.Contains(ip)) {
		return "reaches this machine or its network"
	}
	if last := host[strings.LastIndexByte(host, '.')+1:]; last[0] >= '0' && last[0] <= '9' {
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Is4() {
			return "its address may hide an IP address"
		}
	}
	return ""
}

// inputURL returns the address that a web tool is given.
func (in input) inputURL() string {
	var s string
	_ = json.Unmarshal(in["url"], &s) // "" is not an address, so it asks
	return s
}

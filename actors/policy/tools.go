package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/nodbus/nod/schemas"
)

// kind is what nod knows of a tool.
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

// toolTable names the tools of the agents that nod knows; every other tool
// asks.
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

func canonical(name string) tool {
	if t, ok := toolTable[name]; ok {
		return t
	}
	return tool{name: name}
}

// input is a tool's input by its exact keys. Go's struct decoding would take
// "Command" for "command", and judge another text than the one that runs.
type input map[string]json.RawMessage

func readInput(raw json.RawMessage) (input, error) {
	in := input{}
	if len(raw) == 0 {
		return in, nil
	}
	if flat := flatInput(raw); flat != nil {
		return flat, nil
	}
	if len(raw) > schemas.MaxRequestBytes {
		return nil, errors.New("its input is too long to check")
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, errors.New("its input is not a JSON object")
	}
	return in, nil
}

// flatInput reads an object of plain keys and strings, which most inputs are;
// nil for every other JSON, and for what is none. The strings stay encoded.
func flatInput(raw json.RawMessage) input {
	if len(raw) < 2 || raw[0] != '{' || raw[len(raw)-1] != '}' || len(raw) > schemas.MaxRequestBytes {
		return nil
	}
	in := make(input, 2)
	for at := 1; ; {
		key := stringEnd(raw, at)
		if key < 0 || key+1 >= len(raw) || raw[key] != ':' || bytes.IndexFunc(raw[at:key], func(r rune) bool { return r == '\\' || r >= utf8.RuneSelf }) >= 0 {
			return nil
		}
		value := stringEnd(raw, key+1)
		if value < 0 || bytes.IndexByte(raw[key:value], '\\') >= 0 && !json.Valid(raw[key+1:value]) {
			return nil
		}
		in[string(raw[at+1:key-1])] = raw[key+1 : value]
		switch {
		case raw[value] == ',':
			at = value + 1
		case value == len(raw)-1:
			return in
		default:
			return nil
		}
	}
}

// stringEnd is where the JSON string that starts at at ends; -1 where none
// does.
func stringEnd(raw json.RawMessage, at int) int {
	if at >= len(raw) || raw[at] != '"' {
		return -1
	}
	for i := at + 1; i < len(raw)-1; i++ {
		switch c := raw[i]; {
		case c == '\\':
			i++
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		}
	}
	return -1
}

// text is the string under the only one of these keys that is there.
func (in input) text(keys ...string) (string, bool) {
	out, found := "", false
	for _, k := range keys {
		raw, ok := in[k]
		if !ok {
			continue
		}
		s, isText := unquote(raw)
		if found || !isText {
			return "", false
		}
		out, found = s, true
	}
	return out, found
}

// unquote is a JSON string's text. A plain one needs no second decoding.
func unquote(raw json.RawMessage) (string, bool) {
	if n := len(raw); n >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : n-1]), true
	}
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// shellKeys are the fields of shell tools that do not change what runs.
var shellKeys = map[string]bool{
	"command": true, "cmd": true, "description": true, "timeout": true, "timeout_ms": true, "cwd": true, "workdir": true, "directory": true,
	"dir_path": true, "yield_time_ms": true, "max_output_tokens": true, "run_in_background": true, "is_background": true, "login": true,
	"tty": true, "justification": true, "explanation": true, "initial_wait": true, "mode": true, "sessionId": true,
}

// command is the text that a shell tool runs and where.
func (in input) command() (src, dir string, why string) {
	for k := range in {
		if !shellKeys[k] {
			return "", "", "its input has a field that nod does not know, " + k
		}
	}
	dirs := 0
	for _, k := range []string{"cwd", "workdir", "directory", "dir_path"} {
		if d, ok := in.text(k); ok && d != "" {
			dir = d
			dirs++
		}
	}
	if in["cwd"] != nil && dirs == 2 {
		// The host says the session's directory beside the tool's own.
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

// filePaths are the paths that a file tool names; false where they cannot be
// told.
func (in input) filePaths(t tool) ([]string, bool) {
	var out []string
	if t.name == "Edit" && (in["patch"] != nil || in["input"] != nil) {
		patched, ok := in.patchPaths()
		if !ok {
			return nil, false
		}
		out = patched
	}
	for _, k := range []string{"file_path", "filePath", "path", "notebook_path", "absolute_path", "dir_path"} {
		raw, ok := in[k]
		if !ok {
			continue
		}
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return nil, false
		}
		out = append(out, s)
	}
	return out, len(out) > 0
}

// editKeys are the fields of editing tools besides those that name the file. A
// field that is not known may name another file.
var editKeys = map[string]bool{
	"file_path": true, "filePath": true, "path": true, "notebook_path": true, "absolute_path": true, "patch": true, "input": true, "cwd": true,
	"content": true, "contents": true, "file_text": true, "old_string": true, "new_string": true, "oldString": true, "newString": true, "old_str": true, "new_str": true,
	"replace_all": true, "replaceAll": true, "edits": true, "new_source": true, "cell_id": true, "cell_type": true, "edit_mode": true, "insert_line": true, "insert_text": true,
	"expected_replacements": true, "instruction": true,
}

// knownEdit reports whether every field of an edit is known.
func (in input) knownEdit() bool {
	for k := range in {
		if !editKeys[k] {
			return false
		}
	}
	return true
}

// patchPaths are the files that an apply_patch envelope changes.
func (in input) patchPaths() ([]string, bool) {
	patch, ok := in.text("patch", "input")
	if !ok {
		return nil, false
	}
	var out []string
	for line := range strings.SplitSeq(patch, "\n") {
		line = strings.TrimSpace(line)
		for _, head := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if p, ok := strings.CutPrefix(line, head); ok {
				out = append(out, p)
			}
		}
	}
	return out, len(out) > 0
}

// privateURL says why a URL is none of the open web; "" if it is one.
func privateURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return "is no address of the web"
	}
	if u.User != nil {
		return "its address holds a login"
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal") || !strings.Contains(host, ".") {
		return "reaches this machine or its network"
	}
	if ip, err := netip.ParseAddr(host); err == nil && (!ip.IsGlobalUnicast() || ip.IsPrivate() || ip.Is6()) {
		return "reaches this machine or its network"
	}
	if last := host[strings.LastIndexByte(host, '.')+1:]; last[0] >= '0' && last[0] <= '9' {
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Is4() {
			return "its address hides a number"
		}
	}
	return ""
}

// inputURL is the address that a web tool is given.
func (in input) inputURL() string {
	var s string
	_ = json.Unmarshal(in["url"], &s) // "" is no address, which asks
	return s
}

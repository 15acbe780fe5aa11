// Package tools reads the tool calls of agents. It tells the kind of a tool, and finds the paths,
// the command or the address in a tool's input. It makes no decisions.
package tools

import (
	"encoding/json"
	"maps"

	"github.com/nodbus/nod/schemas"
)

// Kind classifies a tool.
type Kind int

const (
	Unknown Kind = iota
	Shell
	File
	Search
	Edit // tools that write a file
	Web
	Notes // tools that only store the agent's own notes, such as a to-do list
)

// Tool is a tool's kind, and the name that rules use for the tool.
type Tool struct {
	Name string
	Kind Kind
}

// table holds the tools of the supported agents, by the names that agents use.
var table = map[string]Tool{
	"Bash": {"Bash", Shell}, "bash": {"Bash", Shell}, "shell": {"Bash", Shell}, "exec_command": {"Bash", Shell},
	"Shell": {"Bash", Shell}, "local_shell": {"Bash", Shell}, "run_shell_command": {"Bash", Shell}, "container.exec": {"Bash", Shell},
	"Read": {"Read", File}, "read": {"Read", File}, "read_file": {"Read", File}, "view": {"Read", File},
	"Glob": {"Glob", Search}, "glob": {"Glob", Search}, "LS": {"Glob", Search}, "list": {"Glob", Search}, "list_directory": {"Glob", Search},
	"Grep": {"Grep", Search}, "grep": {"Grep", Search}, "rg": {"Grep", Search}, "search_file_content": {"Grep", Search}, "grep_search": {"Grep", Search},
	"Write": {"Write", Edit}, "write": {"Write", Edit}, "write_file": {"Write", Edit}, "create": {"Write", Edit},
	"Edit": {"Edit", Edit}, "edit": {"Edit", Edit}, "MultiEdit": {"Edit", Edit}, "replace": {"Edit", Edit},
	"str_replace": {"Edit", Edit}, "apply_patch": {"Edit", Edit}, "NotebookEdit": {"NotebookEdit", Edit},
	"WebFetch": {"WebFetch", Web}, "webfetch": {"WebFetch", Web}, "web_fetch": {"WebFetch", Web},
	"WebSearch": {"WebSearch", Web}, "web_search": {"WebSearch", Web}, "google_web_search": {"WebSearch", Web},
	"TodoWrite": {"TodoWrite", Notes}, "TodoRead": {"TodoRead", Notes}, "todowrite": {"TodoWrite", Notes}, "todoread": {"TodoRead", Notes},
	"update_plan": {"update_plan", Notes}, "TaskCreate": {"TaskCreate", Notes}, "TaskUpdate": {"TaskUpdate", Notes},
	"TaskGet": {"TaskGet", Notes}, "TaskList": {"TaskList", Notes}, "TaskOutput": {"TaskOutput", Notes}, "ToolSearch": {"ToolSearch", Notes},
}

// HasEffect reports whether a tool of this kind can have the effect that the host states. If not,
// the call is for another tool with the same name.
func (t Tool) HasEffect(a schemas.ActionType) bool {
	if a == "" || a == schemas.ActionOther {
		return true
	}
	if a == schemas.ActionMCPTool {
		return t.Kind == Unknown
	}
	switch t.Kind {
	case Shell:
		return a == schemas.ActionCommand
	case File, Search:
		return a == schemas.ActionFileRead
	case Edit:
		return a == schemas.ActionFileWrite
	case Web:
		return a == schemas.ActionNetwork
	}
	return true
}

// All returns the known tools, by the names that agents use.
func All() map[string]Tool { return maps.Clone(table) }

// Named returns the tool that agents call by this name. If nod does not know the name, the tool has
// the kind Unknown.
func Named(name string) Tool {
	if t, ok := table[name]; ok {
		return t
	}
	return Tool{Name: name}
}

// shellFields are the known input fields of shell tools. An unknown field may change the command that runs.
var shellFields = map[string]bool{
	"command": true, "cmd": true, "description": true, "timeout": true, "timeout_ms": true, "cwd": true, "workdir": true, "directory": true,
	"dir_path": true, "yield_time_ms": true, "max_output_tokens": true, "run_in_background": true, "is_background": true, "login": true,
	"tty": true, "justification": true, "explanation": true, "initial_wait": true, "mode": true, "sessionId": true,
	"title": true, "yieldMs": true, "background": true, "timeoutSeconds": true, "pty": true,
	"fireAndForget": true, "riskLevel": true, "riskLevelReason": true, "summary": true,
}

// KeepsShell reports whether the command runs in a shell that the agent has used before. An
// earlier command may have changed the shell's directory.
func (in Input) KeepsShell() bool {
	id, isText := in.Text("sessionId")
	return in["sessionId"] != nil && (id != "" || !isText)
}

// Command returns the text that a shell tool runs, and the directory in which the text runs. The directory
// is "" if the input has none. If the text or the directory is unknown, the result why is the reason.
func (in Input) Command() (src, dir string, why string) {
	if k := firstUnlisted(in, func(name string) bool { return shellFields[name] }); k != "" {
		return "", "", "its input has a field that nod does not know, " + k
	}
	dirs := 0
	for _, k := range []string{"cwd", "workdir", "directory", "dir_path"} {
		d, ok := in.Text(k)
		if !ok && in[k] != nil && string(in[k]) != "null" {
			return "", "", "its directory cannot be read"
		}
		if d != "" {
			dir = d
			dirs++
		}
	}
	if in["cwd"] != nil && dirs == 2 {
		// If the input has two directories, cwd is the session's directory, which the host has added. The
		// command runs in the other directory.
		dirs, dir = 1, ""
		for _, k := range []string{"workdir", "directory", "dir_path"} {
			if d, ok := in.Text(k); ok && d != "" {
				dir = d
			}
		}
	}
	if dirs > 1 {
		return "", "", "its input names several directories"
	}
	if src, ok := in.Text("command", "cmd"); ok {
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

// URL returns the address in the input of a web tool, or "" if there is none.
func (in Input) URL() string {
	var s string
	_ = json.Unmarshal(in["url"], &s) // after an error, the address stays empty, and nod asks
	return s
}

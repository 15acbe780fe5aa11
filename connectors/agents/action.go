package agents

import (
	"strings"

	"github.com/nodbus/nod/schemas"
)

// ActionOf is the sort of effect that a tool of this name has, by the names
// that coding agents share. An unknown name is ActionOther.
func ActionOf(tool string) schemas.ActionType {
	switch tool {
	case "Bash", "PowerShell", "bash", "powershell", "run_shell_command":
		return schemas.ActionCommand
	case "Write", "Edit", "MultiEdit", "NotebookEdit", "create", "edit", "write_file", "replace", "apply_patch":
		return schemas.ActionFileWrite
	case "Read", "Glob", "Grep", "LS", "NotebookRead", "view", "glob", "grep",
		"read_file", "read_many_files", "list_directory", "grep_search", "search_file_content":
		return schemas.ActionFileRead
	case "WebFetch", "WebSearch", "web_fetch", "google_web_search":
		return schemas.ActionNetwork
	}
	if strings.HasPrefix(tool, "mcp_") { // two underscores, but in Gemini CLI
		return schemas.ActionMCPTool
	}
	return schemas.ActionOther
}

// Title is what a person is asked, in a few words, about a call of that sort.
func Title(a schemas.ActionType) string {
	switch a {
	case schemas.ActionCommand:
		return "Command Execution Approval"
	case schemas.ActionFileWrite:
		return "File Write Approval"
	case schemas.ActionFileRead:
		return "File Read Approval"
	case schemas.ActionNetwork:
		return "Network Access Approval"
	case schemas.ActionMCPTool:
		return "MCP Tool Approval"
	}
	return "Tool Use Approval"
}

package agents

import (
	"strings"

	"github.com/nodbus/nod/schemas"
)

// ActionOf returns the action type of the tool with this name. It recognizes the tool names of
// common coding agents, in their exact case, and returns ActionOther for any other name.
func ActionOf(tool string) schemas.ActionType {
	switch tool {
	case "Bash", "PowerShell", "Shell", "bash", "powershell", "run_shell_command":
		return schemas.ActionCommand
	case "Write", "Edit", "MultiEdit", "NotebookEdit", "create", "edit", "write_file", "replace", "apply_patch":
		return schemas.ActionFileWrite
	case "Read", "Glob", "Grep", "LS", "NotebookRead", "view", "glob", "grep",
		"read_file", "read_many_files", "list_directory", "grep_search", "search_file_content":
		return schemas.ActionFileRead
	case "WebFetch", "WebSearch", "web_fetch", "google_web_search":
		return schemas.ActionNetwork
	}
	if strings.HasPrefix(tool, "mcp_") { // the prefix is mcp_ in Gemini CLI, and mcp__ in other hosts
		return schemas.ActionMCPTool
	}
	return schemas.ActionOther
}

// Title returns the title of a prompt about a call of action type a.
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

package agents

import (
	"strings"

	"github.com/nodbus/nod/schemas"
)

// ActionOf is the sort of effect that a tool of this name has, by the names
// that coding agents share. An unknown name is ActionOther.
func ActionOf(tool string) schemas.ActionType {
	switch tool {
	case "Bash", "PowerShell":
		return schemas.ActionCommand
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return schemas.ActionFileWrite
	case "Read", "Glob", "Grep", "LS", "NotebookRead":
		return schemas.ActionFileRead
	case "WebFetch", "WebSearch":
		return schemas.ActionNetwork
	}
	if strings.HasPrefix(tool, "mcp__") {
		return schemas.ActionMCPTool
	}
	return schemas.ActionOther
}

package hook

import "time"

const beforeTool = "BeforeTool"

// Gemini is Google's Gemini CLI. Its one gate sees every call, before its own
// policy does; an allow of nod's goes on to that policy.
func Gemini() Host {
	return Host{
		Name:    "gemini",
		Agent:   "Gemini CLI",
		Dialect: gemini{},
		Program: "gemini",
		Tested:  []string{"0.61.0"},
		Setup: Setup{
			Dir: ".gemini", File: "settings.json",
			Events: []string{beforeTool}, Blocks: []string{beforeTool}, Matcher: "*",
			Timeout: 24 * time.Hour, Unit: time.Millisecond,
			Note: "Gemini CLI may still ask by its own policy after nod allowed a call; every call is refused while nod does not run",
		},
	}
}

type gemini struct{}

func (gemini) Read(input []byte) (Call, error) {
	call, _, err := readClaudeShape(input, []string{beforeTool}, []string{"ask_user", "exit_plan_mode"})
	return call, err
}

// Reply refuses where Gemini CLI should ask its user: without a terminal it
// would wait for ever, and with --yolo an empty reply runs the tool.
func (gemini) Reply(c Call, v Verdict) ([]byte, int) {
	v = v.withoutEdits("Gemini CLI")
	refusal := map[string]string{"decision": "deny", "reason": v.Reason}
	switch {
	case v.Effect == Leave:
		return []byte("{}"), 0
	case c.Event != beforeTool:
		return blocked(refusal)
	case v.Effect == Allow:
		return said(map[string]string{"decision": "allow"})
	}
	return said(refusal)
}

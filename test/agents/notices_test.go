package agents_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/connectors/agents/hook"
)

// The method gates reports to nod that a scheduled task with the given name lacks a permission, so that nod
// has a notice for the session.
func (x *machine) gates(session, name string) {
	x.does("gate", "--session", session, "--name", name, "--id", name, "--permission", "@network")
}

// The method hears runs an agent that asks about one call. During the call, nod gets a notice for the
// session. The agent's model must be told the notice together with the decision or the result of the call.
func (x *machine) hears(c *exec.Cmd, answer string) (session string) {
	a := x.starts(c)
	r := x.asked(a)
	x.gates(r.Session, "during-the-call")
	x.does(answer, r.ID)
	x.ends(a)
	assert.Contains(x.t, x.model.lastAsked(), "during-the-call")
	return r.Session
}

func TestCodexTellsItsModelTheNotices(t *testing.T) {
	each(t, hook.Codex(), "@openai/codex", func(t *testing.T, program string) {
		for answer := range answers {
			x := newMachine(t, newModel(t, codexShell(touch)))
			x.codexUsesTheModel()
			x.installsFor("codex", program, "--strict")
			session := x.hears(x.codex(program, "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "go on"), answer)
			x.gates(session, "before-the-prompt")
			x.ends(x.starts(x.codex(program, "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "resume", session, "go on")))
			assert.Contains(t, x.model.lastAsked(), "before-the-prompt")
		}
	})
}

func TestGeminiTellsItsModelTheNotices(t *testing.T) {
	each(t, hook.Gemini(), geminiPackage, func(t *testing.T, program string) {
		for answer := range answers {
			x := newMachine(t, newModel(t, geminiTouch))
			x.geminiUsesAKey()
			x.installsFor("gemini", program)
			x.hears(x.gemini(program, "--yolo", "-p", "go on"), answer)
		}
	})
}

func TestQwenTellsItsModelTheNotices(t *testing.T) {
	each(t, hook.Qwen(), qwenPackage, func(t *testing.T, program string) {
		for answer := range answers {
			x := newMachine(t, newModel(t, qwenTouch))
			x.qwenAsksNod()
			x.installsFor("qwen-code", program)
			x.hears(x.qwen(program, "--yolo", "-p", "go on"), answer)
		}
	})
}

// Copilot CLI gives its model no text with an allow, so the notice comes with the user's next prompt.
func TestCopilotTellsItsModelTheNotices(t *testing.T) {
	each(t, hook.Copilot(), copilotPackage, func(t *testing.T, program string) {
		x := newMachine(t, newModel(t, copilotShell(touch)))
		x.installsFor("copilot", program)
		session := x.hears(x.copilot(program, "-p", "go on", "--allow-all-tools"), "deny")
		x.gates(session, "before-the-prompt")
		x.ends(x.starts(x.copilot(program, "-p", "go on", "--allow-all-tools", "--resume="+session)))
		assert.Contains(t, x.model.lastAsked(), "before-the-prompt")
	})
}

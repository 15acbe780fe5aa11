//go:build linux

package agents_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	acp "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/internal/testlog"
	"github.com/nodbus/nod/test/agents/internal/npm"
)

// rig connects an agent program to nod in one way.
type rig interface {
	// The function installs writes the agent's settings, which name the fake model and nod.
	installs(x *machine, program string)
	// The function runs starts the agent with a prompt.
	runs(x *machine, program string) *run
}

// run is an agent at work on its prompt.
type run struct {
	*agent
	over func() bool // a function that reports whether the turn of the prompt is over
	asks func() int  // a function that waits for the process that asks nod on behalf of the agent, and returns its process id
	// alone reports whether the agent asks its own user. It is nil if the test cannot find out.
	alone func() bool
}

// way is a rig, with the calls of the agent's own tools.
type way struct {
	title string // the name of the way in docs/agents.md
	npm.Agent
	rig
	shell func(line string) call
	read  func(path string) call
	// limited says whether the agent ends a hook that takes too long.
	limited bool
}

// printRig runs a program that asks a hook, and that ends after one turn.
type printRig struct {
	host    hook.Host
	pkg     string
	shell   func(line string) call
	install func(x *machine, program string)
	command func(x *machine, program string) *exec.Cmd
}

func (r printRig) installs(x *machine, program string) { r.install(x, program) }

func (r printRig) runs(x *machine, program string) *run {
	a := x.starts(r.command(x, program))
	return &run{agent: a, over: a.hasEnded, asks: x.hook}
}

// printRigs returns a rig for each host that has a flag to run every call without asking its user. With
// this flag, the host asks only nod's hook.
func printRigs() []printRig {
	return []printRig{
		{hook.ClaudeCode(), claudePackage, claudeShell, func(x *machine, _ string) {
			x.does("install", "claude-code", "--strict")
		}, func(x *machine, program string) *exec.Cmd {
			return x.claude(program, "-p", "go on", "--allowedTools", "Bash", "Read")
		}},
		{hook.Codex(), "@openai/codex", codexShell, func(x *machine, _ string) {
			x.codexUsesTheModel()
			x.does("install", "codex", "--strict")
		}, func(x *machine, program string) *exec.Cmd {
			args := []string{"exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"}
			if x.edited { // Codex trusts the hook only if its settings are exactly as nod wrote them
				args = append(args, "--dangerously-bypass-hook-trust")
			}
			return x.codex(program, append(args, "go on")...)
		}},
		{hook.Gemini(), geminiPackage, geminiShell, func(x *machine, program string) {
			x.geminiUsesAKey()
			x.installsFor("gemini", program)
		}, func(x *machine, program string) *exec.Cmd {
			return x.gemini(program, "--yolo", "-p", "go on")
		}},
		{hook.Qwen(), qwenPackage, geminiShell, func(x *machine, _ string) {
			x.qwenAsksNod()
		}, func(x *machine, program string) *exec.Cmd {
			return x.qwen(program, "--yolo", "-p", "go on")
		}},
		{hook.Copilot(), copilotPackage, copilotShell, func(x *machine, _ string) {
			x.does("install", "copilot")
		}, func(x *machine, program string) *exec.Cmd {
			return x.copilot(program, "-p", "go on", "--allow-all-tools")
		}},
		{hook.Droid(), droidPackage, droidShell, func(x *machine, _ string) {
			x.does("install", "droid")
		}, func(x *machine, program string) *exec.Cmd {
			return x.droid(program)
		}},
		{hook.Pi(), piPackage, piShell, func(x *machine, _ string) {
			x.does("install", "pi")
		}, func(x *machine, program string) *exec.Cmd {
			return x.pi(program)
		}},
		{hook.OpenClaw(), npm.OpenClaw, openClawShell, func(x *machine, _ string) {
			x.openClawAsksNod()
		}, func(x *machine, program string) *exec.Cmd {
			return x.openClaw(program)
		}},
	}
}

// hostedRig runs Claude Code under a program that answers none of Claude Code's own prompts.
type hostedRig struct{}

func (hostedRig) installs(x *machine, program string) {
	require.NoError(x.t, x.installs(program).Run())
}

func (hostedRig) runs(x *machine, program string) *run {
	c := x.claude(program, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--permission-prompt-tool", "stdio", "--permission-mode", "default")
	in, err := c.StdinPipe()
	require.NoError(x.t, err)
	out := &testlog.Buffer{}
	c.Stdout = out
	a := x.starts(c)
	_, err = io.WriteString(in, `{"type":"user","message":{"role":"user","content":"go on"}}`+"\n")
	require.NoError(x.t, err)
	said := func(text string) func() bool {
		return func() bool { return strings.Contains(out.String(), text) }
	}
	return &run{agent: a, over: said(`"type":"result"`), asks: x.hook, alone: said(`"can_use_tool"`)}
}

// servedRig runs OpenCode or Kilo as a server, together with the nod command that answers the server's
// permission requests.
type servedRig struct{ kind hook.OpenCodeKind }

func (r servedRig) installs(x *machine, _ string) {
	settings := filepath.Join(x.project, r.kind.Name+".json")
	require.NoError(x.t, os.WriteFile(settings, fmt.Appendf(nil, openCodeSettings, x.model.URL+"/v1"), 0o600))
	x.does("install", r.kind.Name, "--settings", settings)
}

func (r servedRig) runs(x *machine, program string) *run {
	serve := x.command(program, "serve", "--port", "0")
	for _, off := range openCodeOff {
		serve.Env = append(serve.Env, strings.ToUpper(r.kind.Name)+off)
	}
	out := &testlog.Buffer{}
	serve.Stdout = out
	a := x.starts(serve)
	var url string
	x.until("the server listens", func() bool {
		_, after, ok := strings.Cut(out.String(), "http://")
		if ok {
			url = "http://" + strings.Fields(after)[0]
		}
		return ok && strings.Contains(after, "\n") || a.hasEnded()
	})
	require.False(x.t, a.hasEnded(), "the server has ended")
	follow := x.command(x.nod, r.kind.Name, "--url", url)
	x.says(follow, "nod gets the permission prompts")
	x.t.Cleanup(func() { _ = follow.Process.Kill(); _ = follow.Wait() }) // Kill and Wait fail if the process has ended
	var session struct{ ID string }
	x.posts(url+"/session", `{}`, &session)
	over := make(chan struct{})
	go func() {
		defer close(over)
		resp, err := http.Post(url+"/session/"+session.ID+"/message", "application/json", strings.NewReader(`{"parts":[{"type":"text","text":"go on"}]}`))
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body) // the server ends the response's body when the turn is over
			_ = resp.Body.Close()
		}
	}()
	return &run{
		agent: a, over: func() bool { return isClosed(over) }, asks: func() int { return follow.Process.Pid },
		alone: func() bool {
			resp, err := http.Get(url + "/permission")
			if err != nil {
				return false
			}
			defer func() { _ = resp.Body.Close() }()
			text, _ := io.ReadAll(resp.Body) // if the list could not be read, the session counts as not asking its own user
			return strings.Contains(string(text), session.ID)
		},
	}
}

// acpRig runs Cline behind nod acp. The test acts as the editor.
type acpRig struct{}

func (acpRig) installs(x *machine, program string) { x.clineUsesTheModel(program) }

func (acpRig) runs(x *machine, program string) *run {
	c := x.cline(program)
	in, err := c.StdinPipe()
	require.NoError(x.t, err)
	out, err := c.StdoutPipe()
	require.NoError(x.t, err)
	a := x.starts(c)
	asked := make(chan struct{}, 16)
	over := make(chan struct{})
	ended := prompts(x.t, acp.NewClientSideConnection(silentEditor{asked: asked}, in, out), "", x.project)
	go func() { <-ended; close(over) }() // the turn of a killed agent ends with an error
	return &run{agent: a, over: func() bool { return isClosed(over) }, asks: func() int { return c.Process.Pid }, alone: func() bool { return len(asked) > 0 }}
}

// ways returns all ways of connecting an agent that the tests run.
func ways() []way {
	var all []way
	reads := map[string]func(string) call{
		"claude-code": readBy("Read", "file_path"), "gemini": readBy("read_file", "file_path"), "qwen-code": readBy("read_file", "file_path"),
		"copilot": readBy("view", "path"), "droid": readBy("Read", "file_path"), "pi": readBy("read", "path"), "openclaw": readBy("read", "path"),
	}
	for _, r := range printRigs() {
		title := r.host.Agent + ", `nod install " + r.host.Name + "`"
		if len(r.host.Setup.Strict) > 0 {
			title += " `--strict`"
		}
		version := r.host.Tested[len(r.host.Tested)-1]
		w := way{title, npm.Agent{Name: r.host.Name, Package: r.pkg, Version: version, Program: r.host.Program}, r, r.shell, reads[r.host.Name], true}
		if w.read == nil { // Codex reads files with shell commands
			w.read = func(path string) call { return r.shell("cat " + path) }
		}
		all = append(all, w)
	}
	claude := all[0]
	claude.title, claude.rig = "Claude Code, `nod install claude-code`", hostedRig{}
	openCode := readBy("read", "filePath")
	bash := func(line string) call { return call{"bash", map[string]any{"command": line, "description": "run it"}} }
	cline := func(line string) call {
		return call{clineTouch.tool, map[string]any{"commands": []string{line}}}
	}
	return append([]way{claude}, append(all,
		way{"OpenCode, `nod opencode`", npm.OpenCode, servedRig{hook.OpenCode}, bash, openCode, false},
		way{"Kilo, `nod kilo`", npm.Kilo, servedRig{hook.Kilo}, bash, openCode, false},
		way{"Cline, `nod acp`", npm.Cline, acpRig{}, cline, func(path string) call {
			return call{"read_files", map[string]any{"files": []any{map[string]any{"path": path}}}}
		}, false},
	)...)
}

func readBy(tool, field string) func(string) call {
	return func(path string) call { return call{tool, map[string]any{field: path}} }
}

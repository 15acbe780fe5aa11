package hook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/stretchr/testify/assert"
)

// Shortened lines of Claude Code's transcripts.
const (
	printed  = `{"parentUuid":null,"isSidechain":false,"promptId":"p1","type":"user","message":{"role":"user","content":"go on"},"promptSource":"sdk","entrypoint":"sdk-cli"}` + "\n"
	typed    = `{"parentUuid":null,"isSidechain":false,"promptId":"p1","type":"user","message":{"role":"user","content":"go on"},"promptSource":"typed","entrypoint":"sdk-cli"}` + "\n"
	resumed  = `{"type":"user","isMeta":true,"promptId":"p1","message":{"role":"user","content":"Continue from where you left off."},"promptSource":"system","entrypoint":"sdk-cli"}` + "\n"
	earlier  = `{"promptId":"p0","type":"user","message":{"role":"user","content":"x"},"promptSource":"sdk"}` + "\n" + `{"message":{"content":[{"id":"t8","name":"Read","type":"tool_use"},{"id":"t9","name":"Read","type":"tool_use"}],"id":"m0","role":"assistant","stop_reason":"tool_use"},"type":"assistant"}` + "\n"
	first    = `{"isSidechain":false,"message":{"content":[{"id":"t1","input":{"command":"ls"},"name":"Bash","type":"tool_use"}],"id":"m1","role":"assistant","stop_reason":"tool_use"},"type":"assistant"}` + "\n"
	second   = `{"isSidechain":false,"message":{"content":[{"id":"t2","input":{"command":"id"},"name":"Bash","type":"tool_use"}],"id":"m1","role":"assistant","stop_reason":"tool_use"},"type":"assistant"}` + "\n"
	both     = `{"isSidechain":false,"message":{"content":[{"id":"t1","name":"Bash","type":"tool_use"},{"id":"t2","name":"Bash","type":"tool_use"}],"id":"m1","role":"assistant","stop_reason":"tool_use"},"type":"assistant"}` + "\n"
	speaking = `{"isSidechain":false,"message":{"content":[{"id":"t1","name":"Bash","type":"tool_use"}],"id":"m1","role":"assistant","stop_reason":null},"type":"assistant"}` + "\n"
	deferred = `{"isSidechain":false,"attachment":{"type":"hook_deferred_tool","toolUseID":"t1","toolName":"Bash","hookEvent":"PreToolUse"},"type":"attachment"}` + "\n"
)

// TestTheHookDefersOnlyCallsThatTheHostRepeats: the hook replies "defer" only if Claude Code will
// repeat the call. Otherwise Claude Code would ignore this reply and apply its own rules.
func TestTheHookDefersOnlyCallsThatTheHostRepeats(t *testing.T) {
	inTurn := strings.TrimSuffix(preToolCall, "}") + `,"transcript_path":"PATH","prompt_id":"p1"}`
	again := strings.TrimSuffix(preToolCall, "}") + `,"transcript_path":"PATH"}`
	const never = time.Hour - 30*time.Second
	for name, c := range map[string]struct {
		call       string
		transcript string
		later      string // the test appends these lines to the transcript half a minute after the first read
		after      time.Duration
		want       string
		waited     time.Duration
	}{
		"alone in a run of its own":         {inTurn, earlier + printed + first, "", time.Minute, "defer", time.Minute + time.Second},
		"beside another call":               {inTurn, earlier + printed + first + second, "", time.Minute, "deny", time.Minute},
		"beside another, in one message":    {inTurn, printed + both, "", time.Minute, "deny", time.Minute},
		"the prompt was typed":              {inTurn, earlier + typed + first, "", time.Minute, "deny", never},
		"the prompt was also typed":         {inTurn, typed + printed + first, "", time.Minute, "deny", never},
		"the model has not ended":           {inTurn, printed, first, time.Minute, "defer", 2*time.Minute + time.Second},
		"it ends with another call":         {inTurn, printed, first + second, time.Minute, "deny", 2 * time.Minute},
		"it never ends":                     {inTurn, printed + speaking, "", time.Minute, "deny", never},
		"one of its entries has not ended":  {inTurn, printed + speaking + first, "", time.Minute, "deny", never},
		"a line is half written":            {inTurn, printed + first + second[:40], "", time.Minute, "deny", never},
		"no transcript":                     {inTurn, "", "", time.Minute, "deny", never},
		"no entry for the prompt":           {inTurn, first, "", time.Minute, "deny", never},
		"an entry for another prompt only":  {inTurn, earlier + first, "", time.Minute, "deny", never},
		"a resumed run":                     {again, printed + first + deferred, "", time.Minute, "defer", time.Minute + time.Second},
		"the next call of a resumed run":    {inTurn, strings.ReplaceAll(printed, "p1", "p0") + deferred + resumed + first, "", time.Minute, "defer", time.Minute + time.Second},
		"resumed at a terminal":             {inTurn, earlier + deferred + strings.Replace(resumed, "sdk-cli", "cli", 1) + first, "", time.Minute, "deny", never},
		"no prompt and no deferred call":    {again, printed + first, "", time.Minute, "deny", never},
		"another call was deferred":         {again, printed + first + strings.Replace(deferred, "t1", "t9", 1), "", time.Minute, "deny", never},
		"a deferred call in a prompt":       {inTurn, first + deferred, "", time.Minute, "deny", never},
		"of a sub-agent":                    {strings.Replace(inTurn, `"cwd"`, `"agent_id":"a1","cwd"`, 1), printed + first, "", time.Minute, "deny", never},
		"deferral is off":                   {inTurn, printed + first, "", 0, "deny", never},
		"deferral after the host's timeout": {inTurn, printed + first, "", 2 * time.Hour, "deny", never},
		"beside the host's own prompt":      {strings.Replace(inTurn, "PreToolUse", "PermissionRequest", 1), printed + first, "", time.Minute, `"behavior":"deny"`, never},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "transcript.jsonl")
			write := func(text string) {
				if text != "" {
					assert.NoError(t, os.WriteFile(path, []byte(text), 0o600))
				}
			}
			synctest.Test(t, func(t *testing.T) {
				write(c.transcript)
				if c.later != "" {
					time.AfterFunc(90*time.Second, func() { write(c.transcript + c.later) })
				}
				nod := &fakeNod{t: t, ask: waits}
				begin := time.Now()
				got := run(t, t.Context(), strings.NewReader(strings.Replace(c.call, "PATH", path, 1)), nod.connect, hook.Options{HostTimeout: time.Hour, DeferAfter: c.after})
				assert.Equal(t, c.waited, time.Since(begin))
				if !strings.HasPrefix(c.want, `"`) {
					c.want = `"permissionDecision":"` + c.want + `"`
				}
				assert.Contains(t, got.stdout, c.want)
				assert.Contains(t, got.stdout, "stays open")
				assert.NotEmpty(t, nod.detached())
				assert.Empty(t, nod.withdrawn())
			})
		})
	}
}

// TestDeferReadsTheTranscriptTwice: Claude Code writes the calls of one message to its transcript one
// after another. The hook reads the transcript twice, because a later read may show more calls.
func TestDeferReadsTheTranscriptTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	write := func(text string) { assert.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	call := strings.TrimSuffix(preToolCall, "}") + `,"transcript_path":"` + path + `","prompt_id":"p1"}`
	synctest.Test(t, func(t *testing.T) {
		write(printed + first)
		time.AfterFunc(time.Minute+time.Millisecond, func() { write(printed + first + second) })
		nod := &fakeNod{t: t, ask: waits}
		got := run(t, t.Context(), strings.NewReader(call), nod.connect, hook.Options{HostTimeout: time.Hour, DeferAfter: time.Minute})
		assert.Contains(t, got.stdout, `"permissionDecision":"deny"`)
	})
}

package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	permissionCall = `{"session_id":"s1","cwd":"/w","hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"ls"}}`
	preToolCall    = `{"session_id":"s1","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t1"}`
)

// TestInputIsByteFaithful: nod receives the agent's input byte for byte. After an allow, the host runs
// the same bytes.
func TestInputIsByteFaithful(t *testing.T) {
	const members = `"n":12345678901234567890,"f":1.0,"e":1E400,"z":-0,"u":"\u00e9\ud83d\ude00é<&>\u2028","a":{"b":[1,{"c":null}]},"A":1,"a":2`
	stdin := `{"session_id":"s1","cwd":"/w \"x\"","hook_event_name":"PermissionRequest","tool_name":"T","tool_input":{` + members + `}}`
	nod := &fakeNod{t: t, ask: decides(schemas.Decision{Outcome: schemas.Allowed})}
	got := run(t, t.Context(), strings.NewReader(stdin), nod.connect, hook.Options{})

	assert.Equal(t, `{`+members+`,"cwd":"/w \"x\""}`, string(nod.asked().ActionDetails))
	assert.Contains(t, got.stdout, `"updatedInput":{`+members+`}`)
}

// TestProjectStaysWhereTheHostWasStarted: if an agent changes its directory, the rules of the project
// in which its host was started still apply.
func TestProjectStaysWhereTheHostWasStarted(t *testing.T) {
	for started, project := range map[string]string{"/srv/project": "/srv/project", "": "/elsewhere"} {
		nod := &fakeNod{t: t, ask: decides(schemas.Decision{Outcome: schemas.Allowed})}
		run(t, t.Context(), strings.NewReader(`{"session_id":"s1","cwd":"/elsewhere","hook_event_name":"PermissionRequest","tool_name":"T","tool_input":{}}`), nod.connect, hook.Options{Project: started})
		assert.Equal(t, project, nod.asked().Project)
		assert.Equal(t, `{"cwd":"/elsewhere"}`, string(nod.asked().ActionDetails), "where it runs is said as well")
	}
}

func TestCallsWithoutAToolUseIDAreSeparateRequests(t *testing.T) {
	ask := func() *schemas.Request {
		nod := &fakeNod{t: t, ask: decides(schemas.Decision{Outcome: schemas.Allowed})}
		run(t, t.Context(), strings.NewReader(permissionCall), nod.connect, hook.Options{})
		return nod.asked()
	}
	a, b := ask(), ask()
	assert.NotEqual(t, a.PendingID, b.PendingID, "the same command asked twice is two requests")
	assert.False(t, a.Rejoin)
}

// TestUnsafeSuggestionsAreNotOffered: nod offers a suggestion of Claude Code only if the suggestion
// does nothing but add allow rules, and if nod can show it in full.
func TestUnsafeSuggestionsAreNotOffered(t *testing.T) {
	rule := func(content string) string {
		return `[{"type":"addRules","behavior":"allow","destination":"session","rules":[{"toolName":"Bash","ruleContent":"` + content + `"}]}]`
	}
	for name, suggestions := range map[string]string{
		"no list":            `{"type":"addRules"}`,
		"not objects":        `[1,null,"x",[]]`,
		"a mode":             `[{"type":"setMode","mode":"bypassPermissions","destination":"session"}]`,
		"a replaced list":    `[{"type":"replaceRules","behavior":"allow","destination":"session","rules":[{"toolName":"Bash"}]}]`,
		"a rule that denies": `[{"type":"addRules","behavior":"deny","destination":"session","rules":[{"toolName":"Bash"}]}]`,
		"no rules":           `[{"type":"addRules","behavior":"allow","destination":"session","rules":[]}]`,
		"no tool":            `[{"type":"addRules","behavior":"allow","destination":"session","rules":[{"ruleContent":"x"}]}]`,
		"unknown place":      `[{"type":"addRules","behavior":"allow","destination":"everywhere","rules":[{"toolName":"Bash"}]}]`,
		"a line break":       rule(`ls\nrm -rf /`),
		"a bidi character":   rule(`ls \u202e`),
		"too long":           rule(strings.Repeat("x", 300)),
	} {
		t.Run(name, func(t *testing.T) {
			stdin := strings.TrimSuffix(permissionCall, "}") + `,"permission_suggestions":` + suggestions + `}`
			nod := &fakeNod{t: t, ask: decides(schemas.Decision{Outcome: schemas.Allowed})}
			run(t, t.Context(), strings.NewReader(stdin), nod.connect, hook.Options{})
			require.NotNil(t, nod.asked(), "the request is no worse for it")
			assert.Equal(t, schemas.DefaultOptions(), nod.asked().Options)
		})
	}
}

func TestAnAlwaysOptionAddsOnlyTheRulesItNames(t *testing.T) {
	stdin := strings.TrimSuffix(permissionCall, "}") + `,"permission_suggestions":[{"type":"addRules","behavior":"allow","destination":"userSettings",` +
		`"rules":[{"toolName":"Bash"},{"toolName":"Read","ruleContent":"//a/**"}],"directories":["/"],"mode":"bypassPermissions"}]}`
	nod := &fakeNod{t: t, ask: func(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
		o, ok := r.OptionOfKind(schemas.AllowAlways)
		require.True(t, ok)
		assert.Equal(t, "Always allow every use of Bash, Read(//a/**) (Claude Code remembers it in your own Claude settings, for all projects; nod cannot revoke it)", o.Name)
		return decides(schemas.Decision{
			Outcome: schemas.Allowed, OptionID: o.OptionID, OptionKind: o.Kind, By: schemas.By{Kind: schemas.ByHuman},
		})(ctx, r)
	}}
	got := run(t, t.Context(), strings.NewReader(stdin), nod.connect, hook.Options{})
	assert.Contains(t, got.stdout, `"updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Bash"},{"toolName":"Read","ruleContent":"//a/**"}],"behavior":"allow","destination":"userSettings"}]`)
}

// TestDeadline: the hook denies the call before its host would kill the hook, even if Ask ignores its
// context. The hook detaches the request, so that it stays pending.
func TestDeadline(t *testing.T) {
	for name, c := range map[string]struct{ host, want time.Duration }{
		"as installed":             {24 * time.Hour, 24*time.Hour - 30*time.Second},
		"a host without a timeout": {0, 30 * time.Second},
		"shorter than the margin":  {20 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				deaf := make(chan struct{})
				nod := &fakeNod{t: t, ask: func(context.Context, schemas.Request) (schemas.Decision, error) {
					<-deaf
					return schemas.Decision{Outcome: schemas.Allowed}, nil
				}}
				begin := time.Now()
				got := run(t, t.Context(), strings.NewReader(preToolCall), nod.connect, hook.Options{HostTimeout: c.host})
				close(deaf)

				assert.Equal(t, c.want, time.Since(begin))
				assert.Contains(t, got.stdout, `"permissionDecision":"deny"`)
				assert.Contains(t, got.stdout, "The request stays open")
				assert.Zero(t, got.exit)
				assert.NotEmpty(t, nod.detached())
				assert.Empty(t, nod.withdrawn())
			})
		})
	}
}

// TestNodStoresNothing: if nod has not stored the request at the hook's deadline, no approver has seen
// it. The hook then withdraws the request, and does not tell the agent that the request is pending.
func TestNodStoresNothing(t *testing.T) {
	for _, host := range []time.Duration{0, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			nod := &fakeNod{t: t, ask: func(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
				storing, cancel := agents.UntilStored(ctx)
				defer cancel()
				<-storing.Done()
				return schemas.Decision{}, schemas.Errorf(schemas.CodeUnavailable, "the disk is full")
			}}
			got := run(t, t.Context(), strings.NewReader(preToolCall), nod.connect, hook.Options{HostTimeout: host})
			assert.Contains(t, got.stdout, `"permissionDecision":"deny"`)
			assert.Contains(t, got.stdout, "the disk is full")
			assert.NotContains(t, got.stdout, "stays open")
			assert.NotEmpty(t, nod.withdrawn())
			assert.Empty(t, nod.detached())
		})
	}
}

// TestWithdrawalIsBounded: the hook ends soon after its reply, even if nod does not accept the
// withdrawal. If the host's timeout is short, the hook ends well before it, because the host may ignore
// the reply of a hook that still runs then.
func TestWithdrawalIsBounded(t *testing.T) {
	for host, within := range map[time.Duration]time.Duration{
		0: 5 * time.Second, time.Minute: 5 * time.Second, 30 * time.Second: 5 * time.Second, 8 * time.Second: 2 * time.Second, 2 * time.Second: 500 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			var stdout bytes.Buffer
			stuck := &stuckNod{release: make(chan struct{}), replied: func() bool { return stdout.Len() > 0 }}
			ctx, cancel := context.WithCancel(t.Context())
			stuck.asked = cancel
			begin := time.Now()
			exit := hook.Run(ctx, hook.ClaudeCode(), strings.NewReader(permissionCall), &stdout,
				func(context.Context) (hook.Nod, error) { return stuck, nil }, hook.Options{HostTimeout: host})
			close(stuck.release)

			assert.Zero(t, exit)
			assert.True(t, stuck.sawReply.Load(), "the reply goes out before the withdrawal")
			assert.Equal(t, within, time.Since(begin), host)
		})
	}
}

type stuckNod struct {
	asked    func()
	release  chan struct{}
	replied  func() bool
	sawReply atomic.Bool
}

func (s *stuckNod) Ask(context.Context, schemas.Request) (schemas.Decision, error) {
	s.asked()
	<-s.release
	return schemas.Decision{}, errors.New("late")
}

func (s *stuckNod) Withdraw(context.Context, string, string, string) error {
	s.sawReply.Store(s.replied())
	<-s.release
	panic("late")
}

func (s *stuckNod) Detach(ctx context.Context, session, id, reason string) error {
	return s.Withdraw(ctx, session, id, reason)
}

func (s *stuckNod) TakeNotices(context.Context, string) ([]schemas.Notice, error) {
	<-s.release
	return nil, nil
}

func (s *stuckNod) HostResolved(context.Context, schemas.HostResolved) error { <-s.release; return nil }

func TestConnectThatHangsIsNodDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		got := run(t, t.Context(), strings.NewReader(preToolCall), func(context.Context) (hook.Nod, error) {
			<-release
			return nil, nil
		}, hook.Options{HostTimeout: time.Hour})
		close(release)
		assert.Contains(t, got.stdout, `"permissionDecision":"ask"`)
	})
}

func TestConnectFaultsAreNotNodDown(t *testing.T) {
	for name, connect := range map[string]hook.Connect{
		"panic":   func(context.Context) (hook.Nod, error) { panic("boom") },
		"nothing": func(context.Context) (hook.Nod, error) { return nil, nil },
		"other":   func(context.Context) (hook.Nod, error) { return nil, errors.New("keys unreadable") },
		"none":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, t.Context(), strings.NewReader(preToolCall), connect, hook.Options{})
			oneObject(t, got.stdout)
			assert.Contains(t, got.stdout, `"permissionDecision":"deny"`)
			assert.Equal(t, 1, strings.Count(got.stderr, "\n"))
		})
	}
}

func TestBadStdin(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	endless, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	for name, c := range map[string]struct {
		ctx   context.Context
		stdin io.Reader
		want  string
	}{
		"too large":     {t.Context(), io.MultiReader(strings.NewReader(preToolCall), bytes.NewReader(make([]byte, 5<<20))), "larger than 4 MiB"},
		"never ends":    {gone, endless, "context canceled"},
		"fails":         {t.Context(), iotestErr{}, "input/output error"},
		"panics":        {t.Context(), nil, "internal error"},
		"not UTF-8":     {t.Context(), strings.NewReader(strings.Replace(preToolCall, "ls", "l\xff", 1)), "not UTF-8"},
		"nested deeply": {t.Context(), strings.NewReader(strings.Replace(preToolCall, `"ls"`, strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000), 1)), "exceeded max depth"},
		"event no text": {t.Context(), strings.NewReader(`{"hook_event_name":["PreToolUse"]}`), "not as expected: hook_event_name is a JSON array"},
		"a list":        {t.Context(), strings.NewReader(`[` + preToolCall + `]`), "not as expected: the whole input is a JSON array"},
	} {
		t.Run(name, func(t *testing.T) {
			nod := &fakeNod{t: t}
			got := run(t, c.ctx, c.stdin, nod.connect, hook.Options{})
			assert.Equal(t, 2, got.exit, "blocks where stdout is not read")
			assert.Contains(t, oneObject(t, got.stdout), "decision")
			assert.Contains(t, got.stderr, c.want)
			assert.Equal(t, 1, strings.Count(got.stderr, "\n"))
			assert.Nil(t, nod.asked())
		})
	}
}

type iotestErr struct{}

func (iotestErr) Read([]byte) (int, error) { return 0, errors.New("input/output error") }

func TestUnwritableStdoutBlocks(t *testing.T) {
	nod := &fakeNod{t: t, ask: decides(schemas.Decision{Outcome: schemas.Allowed})}
	r, w := io.Pipe()
	require.NoError(t, r.Close())
	assert.Equal(t, 2, hook.Run(t.Context(), hook.ClaudeCode(), strings.NewReader(permissionCall), w, nod.connect, hook.Options{}))
}

// faultyDialect is the dialect of Claude Code, but some of its methods panic.
type faultyDialect struct{ read, reply bool }

func (f faultyDialect) Read(in []byte) (hook.Call, error) {
	if f.read {
		panic("read")
	}
	return hook.ClaudeCode().Dialect.Read(in)
}

func (f faultyDialect) Reply(c hook.Call, v hook.Verdict) ([]byte, int) {
	if f.reply {
		panic("reply")
	}
	return hook.ClaudeCode().Dialect.Reply(c, v)
}

func TestFaultsOfNodsOwnCodeBlock(t *testing.T) {
	for name, d := range map[string]faultyDialect{
		"reading": {read: true}, "replying": {reply: true}, "both": {read: true, reply: true},
	} {
		t.Run(name, func(t *testing.T) {
			nod := &fakeNod{t: t, ask: decides(schemas.Decision{Outcome: schemas.Allowed})}
			host := hook.ClaudeCode()
			host.Dialect = d
			var stdout bytes.Buffer
			exit := hook.Run(t.Context(), host, strings.NewReader(preToolCall), &stdout, nod.connect, hook.Options{})
			assert.Equal(t, 2, exit)
			for _, host := range hook.Hosts() {
				assert.False(t, allows(t, host.Name, "PreToolUse", stdout.String(), exit), host.Name)
			}
		})
	}
}

// TestZeroVerdictRefuses: a zero Verdict becomes a refusal with a reason, because Codex ignores a
// refusal without one.
func TestZeroVerdictRefuses(t *testing.T) {
	for _, host := range hook.Hosts() {
		for _, event := range append(append([]string{""}, host.Setup.Events...), host.Setup.Strict...) {
			out, exit := host.Dialect.Reply(hook.Call{Event: event}, hook.Verdict{})
			assert.False(t, allows(t, host.Name, event, string(out)+"\n", exit), "%s %s: %s", host.Name, event, out)
		}
	}
}

// TestQuestionsAreAskedOneAfterAnother: the hook replies with answers only if people answered every
// question of the call.
func TestQuestionsAreAskedOneAfterAnother(t *testing.T) {
	stdin := `{"session_id":"s1","cwd":"/w","hook_event_name":"PermissionRequest","tool_name":"AskUserQuestion","tool_input":{"n":1.0,"questions":[
		{"question":"Which?","header":"A","options":[{"label":"x"},{"label":"y"}]},{"question":"How?","header":"B","options":[],"multiSelect":true}]}}`
	for name, c := range map[string]struct {
		second schemas.Outcome
		want   string
	}{
		"both answered": {schemas.Allowed, `"answers":{"How?":"slowly","Which?":"y"}`},
		"one left":      {schemas.Denied, "{}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			nod := askerFunc(func(_ context.Context, r schemas.Request) (schemas.Decision, error) {
				asked = append(asked, r.PendingID)
				d := schemas.Decision{SessionID: r.SessionID, PendingID: r.PendingID, Outcome: schemas.Allowed, OptionID: "answer_2", OptionKind: schemas.AllowOnce, By: schemas.By{Kind: schemas.ByHuman}}
				if len(asked) == 2 {
					d.Outcome, d.OptionID, d.Message = c.second, "own_words", "slowly"
				}
				return d, nil
			})
			got := run(t, t.Context(), strings.NewReader(stdin), func(context.Context) (hook.Nod, error) { return nod, nil }, hook.Options{})
			assert.Len(t, asked, 2)
			assert.NotEqual(t, asked[0], asked[1])
			assert.Contains(t, got.stdout, c.want)
			assert.Zero(t, got.exit)
		})
	}
}

func TestAFaultInAQuestionLeavesItToTheHost(t *testing.T) {
	stdin := `{"session_id":"s1","hook_event_name":"PermissionRequest","tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":"Which?"}]}}`
	nod := askerFunc(func(context.Context, schemas.Request) (schemas.Decision, error) { panic("boom") })
	got := run(t, t.Context(), strings.NewReader(stdin), func(context.Context) (hook.Nod, error) { return nod, nil }, hook.Options{})
	assert.Equal(t, "{}\n", got.stdout)
	assert.Zero(t, got.exit)
}

// TestAPromptInTheTranscriptEndsTheQuestion: the hook that asks for the next prompt ends if, according to
// the transcript, the user has written a prompt. This is so even if nod does not learn of that prompt.
func TestAPromptInTheTranscriptEndsTheQuestion(t *testing.T) {
	const typed = `{"type":"queue-operation","operation":"enqueue","sessionId":"s1","content":"go on"}` + "\n"
	transcript := filepath.Join(t.TempDir(), "t.jsonl")
	sent := strings.Replace(typed, "enqueue", "dequeue", 1)
	require.NoError(t, os.WriteFile(transcript, []byte(typed+sent), 0o600)) // the user wrote this prompt before the hook started
	nod := &fakeNod{t: t}
	nod.ask = func(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
		f, err := os.OpenFile(transcript, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteString(typed)
		require.NoError(t, errors.Join(err, f.Close()))
		return waits(ctx, r)
	}
	input, err := json.Marshal(map[string]string{"session_id": "s1", "hook_event_name": "Stop", "transcript_path": transcript})
	require.NoError(t, err)
	got := run(t, t.Context(), bytes.NewReader(input), nod.connect, hook.Options{Turns: true, InTerminal: true, HostTimeout: time.Hour})
	assert.Equal(t, "{}\n", got.stdout)
	assert.Zero(t, got.exit)
	assert.Equal(t, "the user continued at the terminal", nod.withdrawn())

	ahead := &fakeNod{t: t} // this time the user wrote the prompt before the turn was over
	got = run(t, t.Context(), bytes.NewReader(input), ahead.connect, hook.Options{Turns: true, InTerminal: true, HostTimeout: time.Hour})
	assert.Equal(t, "{}\n", got.stdout)
	assert.Nil(t, ahead.asked())
}

// The hook asks nobody for the next prompt if the agent will get it from work in the background.
func TestBackgroundWorkEndsNoTurn(t *testing.T) {
	for _, more := range []string{`,"background_tasks":[{"id":"b1"}]`, `,"session_crons":[{"id":"c1"}]`} {
		nod := &fakeNod{t: t}
		got := run(t, t.Context(), strings.NewReader(`{"session_id":"s1","hook_event_name":"Stop"`+more+`}`), nod.connect, hook.Options{Turns: true, InTerminal: true, HostTimeout: time.Hour})
		assert.Equal(t, "{}\n", got.stdout)
		assert.Nil(t, nod.asked())
	}
}

// TestNoFailureIsTheNextPrompt: at the end of a turn, Claude Code takes a refusal for its next prompt. A
// hook that cannot read its input therefore lets Claude Code continue.
func TestNoFailureIsTheNextPrompt(t *testing.T) {
	for name, input := range map[string]string{
		"empty": "", "cut": `{"session_id":"s1","hook_event_name":"St`, "no UTF-8": "{\"a\":\"\xff\"}", "no event": `{"session_id":"s1"}`,
		"a number as event": `{"hook_event_name":7}`, "another event": `{"session_id":"s1","hook_event_name":"PreToolUse"}`,
		"too large": `{"hook_event_name":"Stop","last_assistant_message":"` + strings.Repeat("x", 4<<20) + `"}`,
	} {
		nod := &fakeNod{t: t}
		got := run(t, t.Context(), strings.NewReader(input), nod.connect, hook.Options{Turns: true, InTerminal: true, HostTimeout: time.Hour})
		assert.Equal(t, "{}\n", got.stdout, name)
		assert.Zero(t, got.exit, name)
		assert.Nil(t, nod.asked(), name)
	}
}

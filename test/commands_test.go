package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// command is the nod binary, built once and removed at the end.
var command string

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // the tests wait for deadlines more than they use a CPU
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "nod-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		command = filepath.Join(dir, "nod")
		if out, err := exec.Command("go", "build", "-o", command, "../cmd/nod").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the command: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// ran is the exit code and the output of a command.
type ran struct {
	code        int
	stdout, err string
}

// nod runs a nod command as the user who runs the tests.
func (e *env) nod(args ...string) ran {
	e.t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(e.ctx, command, args...)
	cmd.Env = append(os.Environ(), "NOD_DATA="+e.dir, "NOD_URL=", "NOD_CREDS=")
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		e.NoError(err)
	}
	return ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// says checks the exit code, and that stdout and stderr contain these texts. With exit
// code 1, stderr must be one line.
func (e *env) says(r ran, code int, stdout, stderr string) {
	e.t.Helper()
	e.Equal(code, r.code, "%+v", r)
	e.Contains(r.stdout, stdout)
	e.Contains(r.err, stderr)
	if code == 1 {
		e.Equal(1, strings.Count(r.err, "\n"), r.err)
		e.True(strings.HasPrefix(r.err, "nod: "), r.err)
	}
}

// atTheTerminal makes the user who runs the tests Ann; Bob answers on the web.
func atTheTerminal(t *testing.T) func(*setup) {
	return func(s *setup) {
		s.settings = strings.Replace(everybody, `"user_id": "ann"`, `"user_id": "`+me(t)+`"`, 1)
	}
}

func (e *env) object(text string) map[string]any {
	e.t.Helper()
	var v map[string]any
	e.NoError(json.Unmarshal([]byte(text), &v), text)
	return v
}

// open asks with nod ask --async, and returns the question.
func (e *env) open(id string) *question {
	e.t.Helper()
	r := e.nod("ask", "--session", "S", "--id", id, "--tool", "Deploy", "--input", `{"to":"production"}`, "--async", "--json")
	e.says(r, 6, "", "")
	var receipt schemas.Receipt
	e.NoError(schemas.Decode([]byte(r.stdout), &receipt))
	e.Equal(id, receipt.PendingID)
	q := &question{agent: e.Agent("local")}
	// The process has ended; the test waits in its place.
	entry := e.stored("S." + id)
	var request schemas.Request
	e.NoError(json.Unmarshal(entry.Record.Request, &request))
	asked, err := q.agent.asker.Submit(e.ctx, request)
	e.NoError(err)
	e.Equal(receipt, asked.Receipt)
	q.OpenRequest = asked
	return q
}

func TestAskingByCommandEndsInItsExitCode(t *testing.T) {
	t.Parallel()
	env := start(t, atTheTerminal(t))
	ask := func(more ...string) ran { return env.nod(append([]string{"ask", "--session", "S"}, more...)...) }

	env.says(ask("--tool", "Lookup"), 0, "Allowed", "")
	env.says(ask("--tool", "Forbidden"), 3, "deni", "")
	d := env.object(ask("--tool", "Lookup", "--json").stdout)
	env.Equal("allowed", d["outcome"])
	env.Equal("policy", d["by"].(map[string]any)["kind"])

	for id, c := range map[string]struct {
		code    int
		outcome string
		answer  []string
	}{
		"allow1":  {0, "allowed", []string{"allow", "allow1"}},
		"edit1":   {3, "allowed", []string{"allow", "edit1", "--input", `{"to":"staging"}`}}, // exit code 3: only a changed input is allowed
		"deny1":   {3, "denied", []string{"deny", "deny1", "-m", "use staging"}},
		"expired": {4, "timed_out", nil},
		"gone1":   {5, "withdrawn", nil},
		"cancel1": {5, "cancelled", nil},
	} {
		if id == "expired" {
			env.timeout("S", 3*time.Second)
		}
		done := make(chan ran, 1)
		go func() { done <- ask("--id", id, "--tool", "Deploy", "--json") }()
		env.soon(id+" is stored", func() bool {
			_, err := env.store.Records.Get(env.ctx, "S."+id)
			return err == nil
		})
		env.timeout("S", 0)
		switch {
		case c.answer != nil:
			env.says(env.nod(c.answer...), 0, "", "")
		case id == "gone1":
			env.Agent("local").Withdraws("S", id)
		case id == "cancel1":
			_, err := env.Bob().Answer(env.ctx, schemas.Answer{
				SessionID: "S", PendingID: id, Digest: env.stored("S." + id).Record.Digest, Cancelled: true, From: schemas.From{UserID: "bob"},
			})
			env.NoError(err)
		}
		r := <-done
		env.Equal(c.code, r.code, id)
		d := env.object(r.stdout)
		env.Equal(c.outcome, d["outcome"], id)
		if id == "expired" {
			env.Equal("Permission request timed out after 3 seconds.", d["message"])
		}
		if id == "deny1" {
			env.Equal("use staging", d["message"])
		}
		// Asked again under the same id, the command ends the same way.
		again := ask("--id", id, "--tool", "Deploy", "--json")
		env.Equal(c.code, again.code, id)
		env.Equal(d, env.object(again.stdout), id)
	}
}

func TestAskingByCommandWithoutADecision(t *testing.T) {
	t.Parallel()
	env := start(t, atTheTerminal(t))
	q := env.open("open1")
	again := env.nod("ask", "--session", "S", "--id", "open1", "--tool", "Deploy", "--input", `{"to":"production"}`, "--async")
	env.says(again, 6, "open1\n", "wait for it with --id open1")
	env.says(env.nod("ask", "--session", "S", "--id", "open1", "--tool", "Deploy", "--input", `{"to":"staging"}`), 1, "", "used for another request")
	env.says(env.nod("ask", "--session", "S", "--tool", "Deploy", "--input", `[1]`), 1, "", "--input must be a JSON object")
	env.says(env.nod("ask", "--session", "S"), 1, "", "--tool")
	env.says(env.nod("ask", "--session", "a.b", "--tool", "Deploy"), 1, "", "session_id")
	env.says(env.nod("ask", "--session", "S", "--permission", "@network"), 1, "", "--reason")
	env.Equal(schemas.TierRequest, env.permission().Tier)
	env.Agent("ada").Asks(deploy("T", "1"))
	env.says(env.nod("ask", "--session", "T", "--id", "1", "--tool", "Deploy"), 1, "", "no session T is known")

	env.apply(`{"approvers":{"people":[]}}`)
	env.says(env.nod("ask", "--session", "S", "--tool", "Deploy"), 1, "", "nobody")
	env.Equal("UNDELIVERABLE", env.object(env.nod("ask", "--session", "S", "--tool", "Deploy", "--json").stdout)["code"])
	env.Agent("local").Withdraws("S", "open1")
	q.Ends(schemas.Withdrawn)
}

// permission asks for @network by command, without waiting.
func (e *env) permission() (r schemas.Receipt) {
	e.t.Helper()
	ran := e.nod("ask", "--session", "S", "--permission", "@network", "--reason", "to install", "--timeout-minutes", "5", "--async", "--json")
	e.says(ran, 6, "", "")
	e.NoError(schemas.Decode([]byte(ran.stdout), &r))
	return r
}

func TestListingAndShowingByCommand(t *testing.T) {
	t.Parallel()
	env := start(t, atTheTerminal(t))
	env.says(env.nod("pending"), 0, "", "no request is pending")
	env.Equal("[]\n", env.nod("pending", "--json").stdout)
	one := env.open("aaaa-1")
	env.open("aaaa-2")
	env.Agent("ada").Asks(deploy("T", "bbbb-1"))

	var list []map[string]any
	env.NoError(json.Unmarshal([]byte(env.nod("pending", "--json").stdout), &list))
	env.Len(list, 3)
	for i, id := range []string{"aaaa-1", "aaaa-2", "bbbb-1"} { // oldest first
		env.Equal(id, list[i]["pending_id"])
		for _, field := range []string{"session_id", "kind", "title", "tool_name", "action_details", "options", "agent", "digest", "risk", "tier", "deadline", "created_at"} {
			env.Contains(list[i], field)
		}
		env.NotContains(list[i], "decision")
	}
	env.Equal("local", list[0]["agent"])
	env.Equal(one.Receipt.Deadline.Format(time.RFC3339Nano), list[0]["deadline"])
	env.NoError(json.Unmarshal([]byte(env.nod("pending", "--session", "T", "--json").stdout), &list))
	env.Len(list, 1)
	env.says(env.nod("pending"), 0, "aaaa", "")

	shown := env.object(env.nod("show", "aaaa-1", "--json").stdout)
	env.Equal("aaaa-1", shown["pending_id"])
	env.Equal(map[string]any{"to": "production"}, without(shown["action_details"], "cwd"))
	env.says(env.nod("show", "bbbb"), 0, "production", "")
	env.says(env.nod("show", "aaaa"), 1, "", "begins the ids of 2 requests (S.aaaa-1, S.aaaa-2): give")
	env.says(env.nod("show", "bbb"), 1, "", "no request") // too short for a prefix
	env.says(env.nod("show", "cccc"), 1, "", "no request")
	env.says(env.nod("allow", "aaaa"), 1, "", "begins the ids of 2 requests")
	env.says(env.nod("show", "a.b"), 1, "", "pending_id: ")

	// An id that begins with another request's id cannot divert an answer.
	env.open("aaaa-1-harmless")
	env.says(env.nod("allow", "aaaa-1"), 1, "", "begins the ids of 2 requests")
	env.says(env.nod("show", "aaaa-1", "--session", "S"), 0, "production", "")
	env.Agent("local").Withdraws("S", "aaaa-1-harmless")

	env.says(env.nod("deny", "aaaa-2", "--json"), 0, `"outcome": "denied"`, "")
	shown = env.object(env.nod("show", "aaaa-2", "--json").stdout)
	env.Equal("denied", shown["decision"].(map[string]any)["outcome"])
	env.NoError(json.Unmarshal([]byte(env.nod("pending", "--json").stdout), &list))
	env.Len(list, 2)
}

func without(object any, field string) map[string]any {
	m, _ := object.(map[string]any)
	delete(m, field)
	return m
}

// The commands that answer print the stored decision, whether or not it is theirs.
func TestAnsweringByCommandTellsWhatReallyHappened(t *testing.T) {
	t.Parallel()
	env := start(t, atTheTerminal(t))
	env.open("allowed1")
	env.says(env.nod("allow", "allo"), 0, "✅ Allowed once", "")
	env.says(env.nod("allow", "allowed1"), 0, "Ann", "") // a duplicate: a success
	env.says(env.nod("deny", "allowed1"), 1, "", "Nothing changed: Ann allowed this once")
	conflict := env.object(env.nod("deny", "allowed1", "--json").stdout)
	env.Equal("CONFLICT", conflict["code"])
	env.Equal("allowed", conflict["details"].(map[string]any)["decision"].(map[string]any)["outcome"])

	q := env.open("denied1")
	env.says(env.nod("deny", "denied1", "-m", "use staging"), 0, "⛔ Denied · Ann", "")
	env.Equal("use staging", q.Ends(schemas.Denied).Message)
	env.says(env.nod("allow", "denied1"), 1, "", "Nothing changed: Ann denied this")

	q = env.open("byhim1")
	env.Bob().Denies(q)
	env.says(env.nod("allow", "byhim1"), 1, "", "Nothing changed: Bob denied this")

	q = env.open("edited1")
	env.says(env.nod("allow", "edited1", "--input", `{"to":"staging"}`), 0, "with changes", "")
	env.JSONEq(`{"to":"staging"}`, string(q.Hears().UpdatedInput))
	env.says(env.nod("allow", "edited1", "--input", `17`), 1, "", "updated_input")

	env.open("gone1")
	env.Agent("local").Withdraws("S", "gone1")
	env.says(env.nod("allow", "gone1"), 1, "", "Nothing changed: the agent stopped waiting")

	env.timeout("S", time.Second)
	env.nod("ask", "--session", "S", "--id", "late1", "--tool", "Deploy", "--async")
	env.soon("it expires", func() bool { return env.stored("S.late1").Record.Decision != nil })
	env.Equal(schemas.TimedOut, env.stored("S.late1").Record.Decision.Outcome)
	env.says(env.nod("allow", "late1"), 1, "", "Nothing changed: this expired")
	env.Equal("STALE", env.object(env.nod("allow", "late1", "--json").stdout)["code"])

	env.says(env.nod("allow", "unknown1"), 1, "", "no such request is waiting for you. See nod pending")
	env.says(env.nod("allow", "unk"), 1, "", "give 4 characters or more")
	env.says(env.nod("show", "unk"), 1, "", "give 4 characters or more")
	env.says(env.nod("allow", "unknown1", "--input", "{"), 1, "", "--input must be JSON")
	env.says(env.nod("allow", "unknown1", "--rule", "2"), 1, "", "add --always or --for")
	env.apply(everybody) // the one who runs the tests is not Ann any more
	env.timeout("S", 0)
	env.open("foreign1")
	before := env.stored("S.foreign1")
	env.says(env.nod("allow", "foreign1"), 1, "", "is not an approver")
	env.Equal(before, env.stored("S.foreign1"))
}

// Without an engine no answer is sent, and the command says that nothing was answered.
func TestAnsweringByCommandWithoutAnEngine(t *testing.T) {
	t.Parallel()
	env := start(t, atTheTerminal(t))
	env.engines[0].stop()
	env.says(env.nod("allow", "abcd"), 1, "", "nod: nothing was answered: no nod engine is on the bus")
}

// The error for a mistyped command names the help to read.
func TestAMistypedCommandNamesItsHelp(t *testing.T) {
	t.Parallel()
	env := &env{Assertions: require.New(t), t: t, ctx: t.Context(), dir: t.TempDir()}
	for args, want := range map[string]string{
		"pendign":                      `nod: no such command: pendign, did you mean "pending"? See nod --help` + "\n",
		"log":                          `nod: no such command: log, did you mean "login"? See nod --help` + "\n",
		"settings sho":                 `nod: no such command: sho, did you mean "show"? See nod settings --help` + "\n",
		"pending x":                    "nod: unexpected argument x: see nod pending --help\n",
		"pending --jsn":                `nod: unknown flag --jsn, did you mean "--json"? See nod pending --help` + "\n",
		"install claude-code --dryrun": "nod: unknown flag --dryrun; if it is for another program, write -- before that program's command\n",
		"install claude-code twice":    "nod: unexpected argument twice: only acp takes a command; see nod install --help\n",
		"policy explain --json ls":     "nod: unknown flag --json; if it is for another program, write -- before that program's command\n",
		"acp --rase -- agent":          "nod: unknown flag --rase; if it is for another program, write -- before that program's command\n",
		"allow":                        `nod: expected "<id>": see nod allow --help` + "\n",
		"grant --session S --to T":     "nod: missing flags: --reason=WHY: see nod grant --help\n",
		"ask --tool Bash":              "nod: missing flags: --session=S: see nod ask --help\n",
	} {
		r := env.nod(strings.Fields(args)...)
		env.Equal(ran{1, "", want}, r, args)
	}
}

// A lasting answer is given only with the text of the rule that nod showed for it.
func TestALastingAnswerByCommandShowsItsReach(t *testing.T) {
	t.Parallel()
	env := start(t, atTheTerminal(t))
	ada := env.Agent("ada")
	for id, c := range map[string]struct {
		asked schemas.Request
		flag  string
		shows string
		rule  string
	}{
		"asked1":   {permission("S", "asked1", "build", "@write:/srv/app", "@network"), "--always", "  @write:/srv/app and @network, for this agent, until it is revoked\n", "@write:/srv/app and @network"},
		"asked2":   {permission("S", "asked2", "build", "@write:/srv/two"), "--for=30m", "  @write:/srv/two, in this session, for 30 minutes\n", "@write:/srv/two"},
		"command1": {shell("S", "command1", "npm test"), "--always", "  Bash(npm test) in /app, for this agent, until it is revoked\n", "Bash(npm test) in /app"},
	} {
		ada.Asks(c.asked)
		r := env.nod("allow", id, c.flag)
		env.Equal(1, r.code)
		env.Equal("Besides this call, nod will allow from now on:\n"+c.shows+"nod: nothing was answered: to confirm, add --yes --rule '"+c.rule+"'\n", r.err)
		env.Nil(env.stored("S." + id).Record.Decision)
		env.says(env.nod("allow", id, c.flag, "--yes"), 1, "", "--yes needs --rule")
		env.says(env.nod("allow", id, c.flag, "--yes", "--rule", "1"), 1, "", "--yes needs --rule")
		env.says(env.nod("allow", id, c.flag, "--yes", "--rule", "Bash(*)"), 1, "", "neither the number nor the text")
		env.says(env.nod("allow", id, c.flag, "--rule", "7"), 1, "", "neither the number nor the text")
		r = env.nod("allow", id, c.flag, "--yes", "--rule", c.rule)
		env.says(r, 0, "and from now on "+c.rule, "")
		env.Contains(r.stdout, "To end this standing answer: nod revoke "+env.stored("S." + id).Record.Decision.Grant.GrantID[:8])
	}
	env.says(env.nod("allow", "asked1", "--always", "--for", "1d"), 1, "", "give one of them")
	env.says(env.nod("allow", "asked1", "--for", "soon"), 1, "", `"soon" is no length of time: write 30m, 8h or 1d`)
	env.says(env.nod("allow", "asked1", "--always", "--scope", "session"), 1, "", "leave it out")
}

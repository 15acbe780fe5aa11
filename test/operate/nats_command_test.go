package operate

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/test/internal/rig"
)

// natsShapes maps each command of docs/observe.md to a pattern that its output must match.
var natsShapes = map[string]string{
	`nats micro ls`:                                                    `│ nod-engine +│`,
	`nats micro info nod-engine`:                                       `(?s)Service: nod-engine.*Subject: nod\.v1\.request\.\*\.\*\.\*`,
	`nats micro stats nod-engine`:                                      `│ request +│ [1-9]`,
	`nats micro ping`:                                                  `nod-engine \w+ +rtt=`,
	`nats kv ls`:                                                       `(?s)│ pending_permissions │.*╯`,
	`nats kv ls pending_permissions`:                                   `(?m)^build\.release01$`,
	`nats kv watch pending_permissions`:                                `PUT pending_permissions > build\.release01: \{"type":"nod\.v1\.record"`,
	`nats kv get pending_permissions build.release01`:                  `"type":"nod\.v1\.record"`,
	`nats kv history pending_permissions build.release01`:              `│ build\.release01 +│ +\d+ │ PUT`,
	`nats sub 'nod.v1.>'`:                                              `Received on "nod\.v1\.request\.local\.build\.`,
	`nats stream report`:                                               `(?s)│ KV_pending_permissions │ File .*│ permission_log +│|│ permission_log +│.*│ KV_pending_permissions │ File`,
	`nats consumer report KV_pending_permissions`:                      `(?s)│ nod-clock +│ Pull.*│ nod-outbox +│ Pull`,
	`nats consumer report permission_prompts`:                          `Consumer report for permission_prompts with \d+ consumers`,
	`nats req nod.v1.query.observer.pending '{"type":"nod.v1.query"}'`: `"type":"nod\.v1\.page","prompts":\[\{.*"pending_id":"release01"`,
}

// natsRefusals are commands that an observer may not run. They must change nothing.
var natsRefusals = []string{
	`nats kv put pending_permissions build.release01 x`, `nats kv del -f pending_permissions build.release01`,
	`nats kv get permission_settings settings`, `nats kv ls permission_settings`,
	`nats stream purge -f permission_log`, `nats stream rm -f permission_log`,
	`nats consumer next KV_pending_permissions nod-outbox`, `nats consumer rm -f KV_pending_permissions nod-outbox`,
	`nats req nod.v1.query.observer.settings '{"type":"nod.v1.query"}'`,
	`nats req nod.v1.manage.observer.freeze '{"type":"nod.v1.brake"}'`,
}

// The real nats command runs every command of docs/observe.md, as an observer.
func TestTheNatsCommandLooksAndChangesNothing(t *testing.T) {
	program := os.Getenv("NOD_TEST_NATS")
	if program == "" {
		t.Skip("NOD_TEST_NATS does not name the nats command")
	}
	m := rig.NewMachine(t)
	m.StartNod()
	does(m, "keys", "add", "observer")
	m.Asked(t, "release01", "--session", "build", "--tool", "Frobnicate")
	run, err := bus.ReadRun(m.Dir)
	require.NoError(t, err)
	command := func(ctx context.Context, line string) *exec.Cmd {
		c := exec.CommandContext(ctx, program, append([]string{"--inbox-prefix", "_INBOX.observer"}, words(line)[1:]...)...)
		c.Env = append(os.Environ(), "HOME="+t.TempDir(), "NATS_URL="+run.URL, "NATS_NKEY="+filepath.Join(m.Dir, "keys", "observer.nk"))
		return c
	}

	page := rig.Document(t, "docs/observe.md")
	found := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(nats [^`]+)` \\|").FindAllStringSubmatch(page, -1) {
		found[row[1]] = true
		shape, ok := natsShapes[row[1]]
		require.True(t, ok, "the test knows no shape for %s", row[1])
		if strings.Contains(row[1], " watch ") || strings.Contains(row[1], " sub ") {
			follows(m, command, row[1], shape)
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := command(ctx, row[1]).CombinedOutput()
		cancel()
		require.NoError(t, err, "%s: %s", row[1], out)
		require.Regexp(t, shape, string(out), row[1])
	}
	require.Len(t, found, len(natsShapes), "the page has every command of the test")

	for _, line := range natsRefusals {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := command(ctx, line).CombinedOutput()
		cancel()
		if err == nil { // nats req exits with 0 even if it gets no reply
			require.NotContains(t, string(out), "Received", line)
			require.Contains(t, line, "nats req ")
		}
	}
	m.Pending("build")
}

// The function follows runs a command that does not end by itself, and causes messages until its output
// matches shape.
func follows(m *rig.Machine, command func(context.Context, string) *exec.Cmd, line, shape string) {
	m.T.Helper()
	ctx, cancel := context.WithTimeout(m.T.Context(), time.Minute)
	defer cancel()
	c := command(ctx, line)
	out, err := c.StdoutPipe()
	require.NoError(m.T, err)
	require.NoError(m.T, c.Start())
	matched := make(chan bool, 1)
	go func() {
		wanted, lines := regexp.MustCompile(shape), bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if wanted.MatchString(lines.Text()) {
				matched <- true
				return
			}
		}
		matched <- false
	}()
	for {
		does(m, "ask", "--session", "build", "--tool", "Read", "--input", `{"file_path":"/x"}`)
		select {
		case ok := <-matched:
			cancel()
			_ = c.Wait() // Wait fails, because the command is killed
			require.True(m.T, ok, "%s printed nothing like %s", line, shape)
			return
		case <-time.After(rig.Tick):
		}
	}
}

// words splits a line into words as a shell does, but knows only single quotes.
func words(line string) (all []string) {
	for _, w := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
		all = append(all, strings.Trim(w, "'"))
	}
	return all
}

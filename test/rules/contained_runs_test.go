package rules

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// containedSettings returns rig.Everybody's settings with the preset "contained" and a deny rule.
func containedSettings(deny string) string {
	return strings.Replace(rig.Rules("", deny), `"permissions":{`, `"permissions":{"preset":"contained",`, 1)
}

// line returns a shell call of a host that can run the call contained.
func line(session, id, command string) schemas.Request {
	r := rig.Shell(session, id, command)
	r.Contain, r.NodPath = schemas.ContainPossible, "/usr/bin/nod"
	return r
}

// runsAs returns the command that a decision tells the host to run instead of the agent's command.
func runsAs(env *rig.Env, d schemas.Decision) string {
	env.Equal(schemas.Allowed, d.Outcome)
	var in struct{ Command string }
	env.NoError(json.Unmarshal(d.UpdatedInput, &in))
	return in.Command
}

// The function starts asks nod whether a contained command may start, as nod exec does.
func starts(a *rig.Agent, r schemas.Request, words ...string) (schemas.Running, error) {
	var out schemas.Running
	err := a.Conn.CallInto(a.Ctx, schemas.RunSubject(a.Name, r.SessionID, r.PendingID), schemas.Run{
		Type: schemas.TypeRun, SessionID: r.SessionID, PendingID: r.PendingID, Words: schemas.WordsDigest(words), Dir: "/app",
	}, &out)
	return out, err
}

func TestACallRunsContainedOnce(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.Apply(containedSettings(""))
	ada := env.Agent("ada")
	r := line("S", "c1", "make test")
	d := ada.Gets(r)
	env.Equal("'/usr/bin/nod' exec --run S.c1 -- bash -c 'make test'", runsAs(env, d))

	_, err := starts(ada, r, "bash", "-c", "rm -rf /")
	env.Refusal(err, schemas.CodeForbidden)
	other := env.Agent("ben")
	_, err = starts(other, r, "bash", "-c", "make test")
	env.Refusal(err, schemas.CodeNotFound)

	var wait sync.WaitGroup
	won := make(chan schemas.Running, 8)
	for range 8 {
		wait.Go(func() {
			if running, err := starts(ada, r, "bash", "-c", "make test"); err == nil {
				won <- running
			}
		})
	}
	wait.Wait()
	env.Len(won, 1, "one decision is one start")
	running := <-won
	env.Equal(schemas.Container{Dir: "/app", Project: "/app"}, running.Container)
	_, err = starts(ada, r, "bash", "-c", "make test")
	env.Refusal(err, schemas.CodeConflict)

	ran := schemas.Ran{
		Type: schemas.TypeRan, SessionID: "S", PendingID: "c1", RunID: running.RunID,
		Report: schemas.RunReport{ExitCode: 2, Refused: []string{"example.org:443"}, Changed: []string{"a.go"}, Changes: 1},
	}
	var ok schemas.OK
	env.NoError(ada.Conn.CallInto(env.Ctx, schemas.RanSubject("ada", "S", "c1"), ran, &ok))
	stored := env.Stored(r.Key()).Record.Run
	env.Equal(2, stored.Report.ExitCode)
	env.Equal([]string{"example.org:443"}, stored.Report.Refused)
	env.False(stored.Report.EndedAt.IsZero())
	env.Soon("the log has the run", func() bool { return env.LoggedOf(schemas.LogRan) == 1 })
}

func TestADecisionIsCheckedAgainBeforeItsCommandStarts(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.Apply(containedSettings(""))
	ada := env.Agent("ada")
	denied, frozen := line("S", "c1", "make test"), line("S2", "c2", "make test")
	env.Equal(schemas.Allowed, ada.Gets(denied).Outcome)
	env.Apply(containedSettings("Bash"))
	_, err := starts(ada, denied, "bash", "-c", "make test")
	env.Contains(env.Refusal(err, schemas.CodeForbidden).Error(), "deny Bash")

	env.Apply(containedSettings(""))
	env.Equal(schemas.Allowed, ada.Gets(frozen).Outcome)
	_, err = env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.NoError(err)
	_, err = starts(ada, frozen, "bash", "-c", "make test")
	env.Refusal(err, schemas.CodeForbidden)
}

func TestACallThatCannotRunContainedAsks(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.Apply(containedSettings(""))
	ada := env.Agent("ada")
	for want, r := range map[string]schemas.Request{
		"its host cannot run it contained": rig.Shell("S", "", "make test"),
		"did not say where nod is":         func() schemas.Request { r := line("S", "", "make test"); r.NodPath = ""; return r }(),
		"no project":                       func() schemas.Request { r := line("S", "", "make test"); r.Contain = "no project"; return r }(),
	} {
		q := ada.Asks(r)
		env.Contains(strings.Join(env.Stored(q.Key).Record.Reasons, "; "), want)
		env.Nil(env.Stored(q.Key).Record.Run)
		q.Drop()
	}
	for _, command := range []string{"rm -rf src", "git push", "make deploy"} {
		ada.Asks(line("S", "", command)).Drop()
	}
	manages(env, "M", schemas.PermissionsChange{WriteDirs: &[]string{"/app"}})
	ada.Asks(line("M", "", "make test")).Drop()
}

func TestAGrantedPermissionLetsACallRunContained(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.Apply(containedSettings(""))
	ada := env.Agent("ada")
	const npm = "@network:registry.npmjs.org:443"
	q := ada.Asks(line("S", "c1", "npm ci"))
	env.Equal([]schemas.Reach{{Permissions: []string{npm}}}, env.Stored(q.Key).Record.Remember)
	env.Contains(fmt.Sprint(env.Stored(q.Key).Record.Reasons), "`npm ci` needs "+npm)
	q.Drop()

	env.Ann().Remembers(ada.Asks(rig.Permission("S", "p1", "to install", npm)), schemas.ScopeSession, 0)
	r := line("S", "c2", "npm ci --no-audit")
	env.Equal(schemas.Allowed, ada.Gets(r).Outcome)
	env.Equal([]string{npm}, env.Stored(r.Key()).Record.Run.Container.Permissions)

	s, err := ada.Holds("S")
	env.NoError(err)
	env.NoError(env.Owner().Revoke(env.Ctx, &s.Grants[0]))
	_, err = starts(ada, r, "bash", "-c", "npm ci --no-audit")
	env.Refusal(err, schemas.CodeForbidden)
	ada.Asks(line("S", "c3", "curl https://example.org/")).Drop()
}

func TestAHostThatIgnoresTheContainerIsNoticed(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.Apply(containedSettings(""))
	ada := env.Agent("ada")
	obeyed, ignored := line("S", "c1", "make test"), line("S", "c2", "make lint")
	env.Equal(schemas.Allowed, ada.Gets(obeyed).Outcome)
	_, err := starts(ada, obeyed, "bash", "-c", "make test")
	env.NoError(err)
	env.Equal(schemas.Allowed, ada.Gets(ignored).Outcome)
	took := 5
	report := func(command string) []string {
		ids, err := ada.Asker.HostResolved(env.Ctx, schemas.HostResolved{
			SessionID: "S", ToolName: "Bash", ActionDetails: fmt.Appendf(nil, `{"command":%q}`, command), RanMillis: &took, Reason: "the call has run",
		})
		env.NoError(err)
		return ids
	}
	env.Empty(report("'/usr/bin/nod' exec --run S.c1 -- bash -c 'make test'"))
	env.Equal([]string{"c2"}, report("make lint"))
	p, _, err := env.Ann().Show(env.Ctx, "S", "c2")
	env.NoError(err)
	env.Len(p.Aftermath, 1)
	env.Equal(schemas.AftermathUncontained, p.Aftermath[0].Kind)
	tries := 0
	env.Soon("later calls ask", func() bool {
		tries++
		reply, err := ada.Sends(line("S", fmt.Sprint("later", tries), "make build"), false)
		return err == nil && reply.Type == schemas.TypeReceipt
	})
}

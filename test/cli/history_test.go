package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// nod history and nod show continue in the log after the records of the last 24 hours, and say what is
// missing in the log.
func TestHistoryAndShowGoBackAsFarAsTheLog(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, rig.AtTheTerminal(t), func(s *rig.Setup) { s.Engine.RecordsKept = time.Nanosecond })
	for _, id := range []string{"first", "second", "third"} {
		open(env, id)
		env.Exits(env.Nod("deny", id, "-m", "use make "+id), 0, "Denied", "")
	}
	env.Soon("all is logged", func() bool { return env.OutboxIdle() && env.LoggedOf(schemas.LogDecided) == 3 })
	kv, err := env.Raw.KeyValue(env.Ctx, "pending_permissions")
	env.NoError(err)
	env.NoError(kv.Purge(env.Ctx, "S.first"))
	env.NoError(kv.Purge(env.Ctx, "S.second"))

	all := env.Nod("history")
	env.Exits(all, 0, "Deploy (its input was not logged)", "the log begins on")
	env.Equal(4, strings.Count(all.Stdout, "\n"), "a header and each request once: %s", all.Stdout)
	env.Contains(strings.Split(all.Stdout, "\n")[1], "use make third")
	env.Equal(2, strings.Count(all.Stdout, "not logged"))
	env.NotContains(env.Nod("history", "-n", "1").Stdout, "not logged")
	env.Exits(env.Nod("history", "deploy", "nothing"), 0, "", "no decision matches; the log begins on")
	env.Exits(env.Nod("history", "--outcome", "allowed"), 0, "", "no decision matches")
	var rows []struct {
		PendingID     string            `json:"pending_id"`
		ActionDetails json.RawMessage   `json:"action_details"`
		Decision      *schemas.Decision `json:"decision"`
		Logged        bool              `json:"logged"`
	}
	env.NoError(json.Unmarshal([]byte(env.Nod("history", "--json").Stdout), &rows))
	env.Len(rows, 3)
	env.Equal([]bool{false, true, true}, []bool{rows[0].Logged, rows[1].Logged, rows[2].Logged})
	env.Empty(rows[1].ActionDetails)
	env.Equal(schemas.Denied, rows[1].Decision.Outcome)

	env.Exits(env.Nod("show", "first"), 0, "log.payloads", "")
	env.Exits(env.Nod("show", "firs"), 0, "nothing can be decided or undone here", "")
	env.Exits(env.Nod("show", "first", "--exact"), 1, "", "is not kept")
	env.Exits(env.Nod("show", "nosuch"), 1, "", "no request nosuch is known")
	env.Exits(env.Nod("allow", "first"), 1, "", "no such request is waiting")
}

// nod show takes an exact id of the log before longer ids that begin with it. It refuses a text with which
// several ids begin.
func TestShowPrefersAnExactIDOfTheLog(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestHistoryAndShowGoBackAsFarAsTheLog reads the same log")
	env := rig.Start(t, rig.AtTheTerminal(t), func(s *rig.Setup) { s.Engine.RecordsKept = time.Nanosecond })
	at := time.Now().UTC().Add(-48 * time.Hour)
	for i, id := range []string{"deploy", "deploy-2", "deploy-2", "rebuild"} {
		for _, kind := range []schemas.LogKind{schemas.LogAsked, schemas.LogDecided} {
			e := schemas.LogEntry{Type: schemas.TypeLogEntry, At: at.Add(time.Duration(i) * time.Hour), Kind: kind, SessionID: "S", PendingID: id, Actor: "ada", ToolName: "Bash"}
			if kind == schemas.LogDecided {
				e.AskedAt, e.Actor, e.Agent, e.Outcome = e.At, "Ann@web", "ada", schemas.Denied
			}
			_, _, err := env.Store.Log.Append(env.Ctx, fmt.Sprint(i, kind), e)
			env.NoError(err)
		}
	}
	exact := env.Nod("show", "deploy")
	env.Exits(exact, 0, "Bash (its input was not logged)", "")
	env.Regexp(`(?m)^Request +deploy$`, exact.Stdout)
	env.Exits(env.Nod("show", "depl"), 1, "", `"depl" begins the ids of 2 requests in the log (deploy-2 of session S, deploy of session S): give more of it`)
	env.Regexp(`(?m)^Request +deploy-2$`, env.Nod("show", "deploy-").Stdout)
	env.Exits(env.Nod("show", "rebu"), 0, "rebuild", "")
	env.Exits(env.Nod("history", "--outcome", "expired"), 0, "", "no decision matches")
	env.Exits(env.Nod("history", "--outcome", "late"), 1, "", "must be one of")
}

// nod sessions --all also lists the sessions whose requests are only in the log, with the number of these
// requests. The flag --since leaves out sessions without a request after the given time.
func TestSessionsGoBackAsFarAsTheLog(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestHistoryAndShowGoBackAsFarAsTheLog reads the same log")
	env := rig.Start(t, rig.AtTheTerminal(t), func(s *rig.Setup) { s.Engine.RecordsKept = time.Nanosecond })
	open(env, "now")
	for i, session := range []string{"oldest", "older", "older"} {
		at := time.Now().UTC().Add(time.Duration(i-10) * 24 * time.Hour)
		id := fmt.Sprint("r", i)
		request := rig.Shell(session, id, "make release")
		request.Type, request.CreatedAt, request.Host, request.Project = schemas.TypeRequest, at, "buildbox", "/srv/app"
		data, err := schemas.Encode(request)
		env.NoError(err)
		for _, e := range []schemas.LogEntry{
			{Kind: schemas.LogAsked, At: at, Actor: "ada", Request: data},
			{Kind: schemas.LogDecided, At: at, AskedAt: at, Actor: "Ann@web", Agent: "ada", Outcome: schemas.Denied},
		} {
			e.Type, e.SessionID, e.PendingID, e.ToolName = schemas.TypeLogEntry, session, id, "Bash"
			_, _, err := env.Store.Log.Append(env.Ctx, fmt.Sprint(id, e.Kind), e)
			env.NoError(err)
		}
	}
	env.NotContains(env.Nod("sessions").Stdout, "older")
	all := env.Nod("sessions", "--all")
	env.Exits(all, 0, "SESSION", "the log begins on")
	env.Regexp(`(?m)^older +ada +buildbox +app +past +2 .*make release`, all.Stdout)
	env.Regexp(`(?m)^oldest +ada +buildbox +app +past +1 `, all.Stdout)
	env.Regexp(`(?m)^S +.*waiting for you +1 `, all.Stdout)
	var rows []struct {
		SessionID string `json:"session_id"`
		State     string `json:"state"`
		Asked     int    `json:"asked"`
		Host      string `json:"host"`
	}
	env.NoError(json.Unmarshal([]byte(env.Nod("sessions", "--since", "9d12h", "--json").Stdout), &rows))
	env.Len(rows, 2)
	env.Equal("older past 2 buildbox", fmt.Sprint(rows[1].SessionID, " ", rows[1].State, " ", rows[1].Asked, " ", rows[1].Host))
	env.Exits(env.Nod("history", "--session", "oldest"), 0, "make release", "")
}

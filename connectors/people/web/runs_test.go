package web_test

import (
	"testing"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// A session's page summarizes its contained calls, as nod session show does.
func TestASessionsPageSumsUpItsContainedRuns(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestASessionsPageIsItsTimelineAndAnswersInPlace opens the same page")
	r := start(t)
	owner := connector.NewOwner(r.connect(roles.ID{Role: roles.Owner}), schemas.ConnectorTerminal)
	state, err := owner.ApplySettings(r.ctx, under(`"preset": "contained"`))
	r.NoError(err)
	_, err = owner.Follow(r.ctx, state.Revision)
	r.NoError(err)
	r.runs("S", "one", schemas.RunReport{ExitCode: 2, Refused: []string{"example.org:443"}, Changed: []string{"a.go"}, Changes: 1})
	r.runs("S", "two", schemas.RunReport{})
	const sum = "2 calls contained, 1 failed; 1 file changed; 1 host refused"
	s := r.opens("ann")
	history, _ := s.gets("permissions.history", fields{"session_id": "S", "limit": 1})
	r.Equal(sum, history.Payload.Runs, "also of decisions that the limit leaves out")
	all, _ := s.gets("permissions.history", nil)
	r.Empty(all.Payload.Runs)

	p := r.visits("ann", 1024, 900)
	p.goes("#/session/S")
	p.sees("document.querySelector('nod-session .runs')?.innerText === 'Ran contained: " + sum + ".'")
	p.Contains(p.text("nod-session li[data-id=one]"), "exit code 2, 1 file changed (a.go); refused: example.org:443")
	p.goes("#/session/T")
	p.sees("document.querySelector('nod-session .runs')?.hidden")
}

// runs makes a call that runs contained, and reports its end.
func (r *rig) runs(session, id string, report schemas.RunReport) {
	r.t.Helper()
	request := shell(session, id, "make test")
	request.Contain, request.NodPath = schemas.ContainPossible, "/usr/bin/nod"
	open, err := r.asker.Submit(r.ctx, request)
	r.NoError(err)
	r.Zero(open.Receipt.Revision, "the preset decides it")
	conn := r.connect(roles.AgentID("local"))
	var running schemas.Running
	r.NoError(conn.CallInto(r.ctx, schemas.RunSubject("local", session, id), schemas.Run{
		Type: schemas.TypeRun, SessionID: session, PendingID: id, Words: schemas.WordsDigest([]string{"bash", "-c", "make test"}), Dir: "/app",
	}, &running))
	var ok schemas.OK
	r.NoError(conn.CallInto(r.ctx, schemas.RanSubject("local", session, id), schemas.Ran{
		Type: schemas.TypeRan, SessionID: session, PendingID: id, RunID: running.RunID, Report: report,
	}, &ok))
}

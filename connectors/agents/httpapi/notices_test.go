package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// A call that waits for a session's notices gets the next notice. If no call waits, the notice goes to
// the next call. Each notice goes only once, and only to the session's agent.
func TestNoticesOfASession(t *testing.T) {
	r := start(t)
	const path = "/api/v1/notices?session_id=S"
	agent := r.connect(roles.ID{Role: roles.Agent, Name: "local"})
	gate := func(name string) {
		var reply schemas.GateReply
		r.NoError(agent.CallInto(r.ctx, schemas.GateSubject("local"), schemas.Gate{
			Type: schemas.TypeGate, SessionID: "S", GateID: "g", Name: name, Permissions: []string{"@network"},
		}, &reply))
	}
	notices := func(got answer) (texts []string) {
		r.Equal(http.StatusOK, got.status, got.body)
		var all schemas.Notices
		r.NoError(schemas.Decode([]byte(got.body), &all))
		for _, n := range all.Notices {
			texts = append(texts, n.Text)
		}
		return texts
	}
	r.Equal(http.StatusNoContent, r.does("GET", path, "").status)
	r.Equal(http.StatusNoContent, r.does("GET", path+"&wait=30ms", "").status)
	gate("one")
	gate("two")
	r.Equal(http.StatusNoContent, r.does("GET", path, "", asAda).status, "another agent")
	kept := notices(r.does("GET", path, ""))
	r.Len(kept, 2)
	r.Contains(kept[0], `"one"`)
	r.Equal(http.StatusNoContent, r.does("GET", path, "").status, "each comes once")

	waits := r.later("GET", path+"&wait=1m", "")
	gate("three")
	r.Contains(notices(waits())[0], `"three"`)
	for _, bad := range []string{"/api/v1/notices", "/api/v1/notices?session_id=a.b", path + "&wait=11m", path + "&wait=soon"} {
		r.refused(r.does("GET", bad, ""), http.StatusBadRequest, schemas.CodeValidation)
	}
	r.Equal(http.StatusUnauthorized, r.does("GET", path, "", header("Authorization", "Bearer x")).status)
}

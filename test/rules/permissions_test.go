package rules

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// file returns a tool call about a file on the host devbox.
func file(tool, session, path string) schemas.Request {
	r := rig.Call(tool, session, "")
	r.Host, r.Project = "devbox", filepath.Dir(path)
	r.ActionDetails = fmt.Appendf(nil, `{"file_path":%q,"cwd":%q}`, path, filepath.Dir(path))
	return r
}

// The function manages sets a session's permissions, which makes it a managed session.
func manages(e *rig.Env, session string, set schemas.PermissionsChange) {
	e.T.Helper()
	_, err := e.Owner().ChangeSession(e.Ctx, schemas.SessionChange{SessionID: session, Permissions: &set})
	e.NoError(err)
}

func TestAManagedSessionAsksForMoreThanItsPermissions(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 2 })
	ada, dir := env.Agent("ada"), rig.Tree(t)
	env.Equal(schemas.Allowed, ada.Gets(file("Read", "S", dir+"/out/x")).Outcome, "a session that is not managed goes by the rules")
	ada.Asks(file("Write", "S", dir+"/in/x")).Drop()

	manages(env, "S", schemas.PermissionsChange{ReadDirs: &[]string{dir + "/in"}, WriteDirs: &[]string{dir + "/in/sub"}})
	for tool, path := range map[string]string{"Read": "/in/x", "Write": "/in/sub/new/x", "Edit": "/in/sub/x"} {
		env.Equal(schemas.Allowed, ada.Gets(file(tool, "S", dir+path)).Outcome, "%s %s", tool, path)
	}
	for _, c := range []struct{ tool, path, missing string }{
		{"Read", "/out/x", "@read:/out/x"},
		{"Read", "/in/link/x", "@read:/out/x"},
		{"Read", "/in/../out/x", "@read:/out/x"},
		{"Write", "/in/x", "@write:/in/x"},
		{"Write", "/in/sub/../x", "@write:/in/x"},
		{"Read", "/in/dangling", "@read:/nowhere"},
		{"Read", "/into/x", "@read:/into/x"},
	} {
		q := ada.Asks(file(c.tool, "S", dir+c.path))
		access, path := c.missing[:len("@read:")], c.missing[len("@read:"):]
		if c.tool == "Write" {
			access, path = c.missing[:len("@write:")], c.missing[len("@write:"):]
		}
		env.Equal([]schemas.Reach{{Permissions: []string{access + dir + path}}}, env.Stored(q.Key).Record.Remember, c.path)
		q.Drop()
	}
	env.Equal(schemas.Allowed, ada.Gets(rig.Lookup("S", "")).Outcome, "the session's permissions do not cover this tool")
	command := func(line string) schemas.Request {
		r := rig.Shell("S", "", line)
		r.Host, r.Project = "devbox", dir+"/in"
		r.ActionDetails = fmt.Appendf(nil, `{"command":%q,"cwd":%q}`, line, dir+"/in")
		return r
	}
	env.NoError(os.Mkdir(dir+"/in/.git", 0o755)) // the permission to use git for reading holds only in a repository
	for _, line := range []string{"ls", "cat x sub/y | head -n 3", "cd sub && ls", "git status", "grep -n foo " + dir + "/in/x", "cat sub/*.md"} {
		env.Equal(schemas.Allowed, ada.Gets(command(line)).Outcome, line)
	}
	for _, line := range []string{"cat " + dir + "/out/x", "ls ..", "cat link/x", "cd .. && ls", "head -n3 ../out/x", "cat ~/x", "find / -name x", "ls link/../../out", "cat link/*", "cat < ../out/x", "wc -l < " + dir + "/out/x", "cat */../../out/x", "cat lin*/x", "cat sub/leak*.txt", "grep -lR x ."} {
		ada.Asks(command(line)).Drop()
	}
	env.NoError(os.Remove(dir + "/in/.git"))
	env.NoError(os.WriteFile(dir+"/.git", []byte("gitdir: elsewhere\n"), 0o600))
	shown := ada.Asks(command("git show HEAD:out/x"))
	env.Equal([]schemas.Reach{{Permissions: []string{"@read:" + dir}}}, env.Stored(shown.Key).Record.Remember, "git needs to read the whole repository around the directory")
	shown.Drop()
	fetch := rig.Call("WebFetch", "S", "")
	fetch.Host, fetch.ActionDetails = "devbox", []byte(`{"url":"https://example.org/","prompt":"x"}`)
	q := ada.Asks(fetch)
	env.Ann().Remembers(q, schemas.ScopeSession, 0)
	env.Equal(schemas.Allowed, ada.Gets(fetch).Outcome)
	elsewhere := file("Read", "S", dir+"/in/x")
	elsewhere.Host = "otherbox"
	ada.Asks(elsewhere).Drop() // the engine cannot follow links on another host
}

func TestRulesAndSecretsOverridePermissions(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) {
		s.Settings = `{"permissions":{"deny":["Write(//**/never)"],"ask":["Write(//**/always)"],"tools":[{"name":"Peruse","needs":"read"}]},` + rig.Everybody[len(`{
	"permissions": {"allow": ["Lookup"], "deny": ["Forbidden"]},`):]
	})
	ada, dir := env.Agent("ada"), rig.Tree(t)
	manages(env, "S", schemas.PermissionsChange{WriteDirs: &[]string{dir}})
	env.Equal(schemas.Allowed, ada.Gets(file("Write", "S", dir+"/x")).Outcome)
	env.Equal(schemas.Allowed, ada.Gets(file("Peruse", "S", dir+"/x")).Outcome)
	ada.Asks(file("Peruse", "S", "/etc/hostname")).Drop()
	ada.Asks(file("Peruse", "S", dir+"/.env")).Drop()
	env.Equal(schemas.Denied, ada.Gets(file("Write", "S", dir+"/never")).Outcome)
	for _, path := range []string{"/always", "/.env", "/id_rsa", "/.git/hooks/pre-commit"} {
		asked, err := ada.Asker.Submit(env.Ctx, file("Write", "S", dir+path))
		env.NoError(err)
		env.NotZero(asked.Receipt.Revision, "%s was decided at once", path)
		asked.Drop()
	}
}

func TestAPermissionRequestGrantsTheMissingPermissions(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 2 })
	ada, ann, dir := env.Agent("ada"), env.Ann(), rig.Tree(t)
	hears := func(r schemas.Request, d schemas.Decision) agents.AgentReply { return agents.DescribeDecision(&r, &d) }

	r := rig.Permission("S", "1", "build", "@write:"+dir+"/in")
	q := ada.Asks(r)
	ann.Allows(q)
	env.Equal(agents.AgentReply{Allowed: true, Text: "Permission granted for write access to " + dir + "/in."}, hears(r, q.Hears()))
	env.Equal(schemas.Allowed, ada.Gets(file("Write", "S", dir+"/in/sub/x")).Outcome)
	env.Equal(schemas.Allowed, ada.Gets(file("Read", "S", dir+"/out/x")).Outcome, "a grant takes nothing away")
	ada.Asks(file("Write", "S", dir+"/in/link/x")).Drop()
	ada.Asks(file("Write", "S2", dir+"/in/x")).Drop()

	r = rig.Permission("S", "2", "build", "@read:"+dir+"/in/sub")
	env.Equal(agents.AgentReply{Allowed: true, Text: "Permission already granted for read access to " + dir + "/in/sub."}, hears(r, ada.Gets(r)))

	q = ada.Asks(rig.Permission("S", "3", "fetch", "@read:"+dir+"/in", "@network", "@write:"+dir+"/in/link"))
	env.Equal([]schemas.Reach{{Permissions: []string{"@network", "@write:" + dir + "/out"}}}, env.Stored("S.3").Record.Remember, "only the missing permissions, with links resolved")
	ann.Denies(q)
	r = rig.Permission("S", "3", "fetch", "@network")
	env.Equal(agents.AgentReply{Text: "Permission denied for network access."}, hears(r, q.Hears()))
	ada.Asks(rig.Permission("S", "4", "fetch", "@network")).Drop()
	env.Equal(1, env.LoggedOf(schemas.LogGranted))
}

func TestPermissionRequestsAreCheckedInOrder(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	ada.Asks(rig.Deploy("other", "1")).Drop()
	env.Agent("ben").Asks(rig.Deploy("bens", "1")).Drop()
	for _, c := range []struct {
		reason, agent string
		tags          []string
		says          string
	}{
		{" ", "nobody", []string{"@read:"}, "Reason is required."},
		{"r", "nobody", nil, "Permission is required."},
		{"r", "nobody", []string{"@read:"}, "Agent not found: nobody"},
		{"r", "bens", []string{"@read:"}, "Agent not found: bens"},
		{"r", "not an id", []string{"@read:"}, "Agent not found: not an id"},
		{"r", "", []string{"@network", "@read:"}, "Read permission requires a path."},
		{"r", "other", []string{"@write: "}, "Write permission requires a path."},
		{"r", "", []string{"@read:src"}, "Path must be absolute."},
		{"r", "", []string{"@read:~/src"}, "Path must be absolute."},
		{"r", "", []string{"@exec:/bin/sh"}, "Permission must be @read:<path>, @write:<path> or @network."},
		{"r", "", []string{"@read:/a\x00b"}, "Path must not contain control characters."},
	} {
		r := rig.Permission("S", "", c.reason, c.tags...)
		r.ActionDetails = fmt.Appendf(nil, `{"agent_id":%q}`, c.agent)
		_, err := ada.Asker.Submit(env.Ctx, r)
		env.EqualError(errors.Unwrap(err), c.says)
	}
	background := true
	_, err := env.Owner().ChangeSession(env.Ctx, schemas.SessionChange{SessionID: "S", Background: &background})
	env.NoError(err)
	r := rig.Permission("S", "", "r", "@network")
	r.ActionDetails = []byte(`{"agent_id":"other"}`)
	env.Contains(ada.Refused(r, schemas.CodeForbidden).Message, "Background agents cannot")
	env.Apply(`{"approvers":{"people":[]}}`)
	ada.Refused(rig.Permission("S", "", "r", "@read:"), schemas.CodeUndeliverable) // if there is no approver, nod refuses the request before it reads the malformed permission
}

func TestAPermissionForAnotherSessionIsGrantedThere(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	ada.Asks(rig.Deploy("helper", "1")).Drop()
	r := rig.Permission("S", "", "the helper builds", "@network")
	r.ActionDetails = []byte(`{"agent_id":"helper"}`)
	env.Ann().Allows(ada.Asks(r))
	env.Equal(schemas.Allowed, ada.Gets(rig.Permission("helper", "", "r", "@network")).Outcome)
	ada.Asks(rig.Permission("S", "", "r", "@network")).Drop()
}

func TestAnUnansweredPermissionRequestTimesOut(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	r := rig.Permission("S", "", "r", "@network")
	r.TimeoutSeconds = 1
	q := env.Agent("ada").Asks(r)
	d := q.Ends(schemas.TimedOut)
	heard := agents.DescribeDecision(&r, &d)
	env.True(heard.IsError)
	env.Equal("Permission request timed out after 1 second", heard.Text)
	env.Equal(15*time.Minute, schemas.DefaultPermissionTimeout)
}

func TestASessionSharesOnlyPermissionsThatItHas(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, dir := env.Agent("ada"), rig.Tree(t)
	share := func(to, reason string, tags ...string) error {
		var g schemas.Grants
		return ada.Conn.CallInto(env.Ctx, schemas.GrantSubject("ada"), schemas.Share{Type: schemas.TypeShare, SessionID: "S", AgentID: to, Permissions: tags, Reason: reason}, &g)
	}
	for _, session := range []string{"S", "helper", "third"} {
		ada.Asks(rig.Deploy(session, "")).Drop()
	}
	env.Agent("ben").Asks(rig.Deploy("bens", "")).Drop()
	granted := env.Ann().Allows(ada.Asks(rig.Permission("S", "", "r", "@write:"+dir))).Grant
	for says, err := range map[string]error{
		"Reason is required.":                              share("helper", " ", "@network"),
		"Permission is required.":                          share("helper", "r"),
		"You can only grant permissions you already have.": share("nobody", "r", "@write:"+dir, "@network"),
		"Agent not found: nobody":                          share("nobody", "r", "@write:"+dir),
		"Agent not found: bens":                            share("bens", "r", "@write:"+dir),
	} {
		env.EqualError(err, says)
	}
	env.NoError(share("helper", "it writes for me", "@write:"+dir+"/in"))
	env.Equal(schemas.Allowed, ada.Gets(file("Write", "helper", dir+"/in/x")).Outcome)
	ada.Asks(file("Write", "helper", dir+"/out/x")).Drop()
	var g schemas.Grants
	env.NoError(ada.Conn.CallInto(env.Ctx, schemas.GrantSubject("ada"), schemas.Share{
		Type: schemas.TypeShare, SessionID: "helper", AgentID: "third", Permissions: []string{"@read:" + dir + "/in/sub"}, Reason: "and so on",
	}, &g))
	env.Equal("helper", g.Grants[0].By.Name)
	env.NoError(env.Owner().Revoke(env.Ctx, granted)) // the revocation also ends the grants that were shared from this grant
	ada.Asks(file("Write", "helper", dir+"/in/x")).Drop()
	grants, err := env.Owner().Grants(env.Ctx, "")
	env.NoError(err)
	env.Len(grants, 3)
	for _, g := range grants {
		env.NotZero(g.RevokedAt, g.SessionID)
	}
}

func TestASharedPermissionLastsNoLongerThanItsSource(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, ann := env.Agent("ada"), env.Ann()
	ada.Asks(rig.Deploy("helper", "")).Drop()
	q := ada.Asks(rig.Permission("S", "", "r", "@network"))
	source := ann.Remembers(q, schemas.ScopeSession, 3600).Grant
	var g schemas.Grants
	env.NoError(ada.Conn.CallInto(env.Ctx, schemas.GrantSubject("ada"), schemas.Share{Type: schemas.TypeShare, SessionID: "S", AgentID: "helper", Permissions: []string{"@network"}, Reason: "r"}, &g))
	env.Equal(source.ExpiresAt, g.Grants[0].ExpiresAt)
	env.Equal([]string{source.GrantID}, g.Grants[0].DerivedFrom)
	var again schemas.Grants
	env.NoError(ada.Conn.CallInto(env.Ctx, schemas.GrantSubject("ada"), schemas.Share{Type: schemas.TypeShare, SessionID: "S", AgentID: "helper", Permissions: []string{"@network"}, Reason: "r"}, &again))
	env.Equal(g.Grants, again.Grants, "sharing again changes nothing")
	err := env.Conn(roles.ConnectorID("tg")).CallInto(env.Ctx, schemas.QuerySubject("tg", schemas.QueryGrants), schemas.Query{Type: schemas.TypeQuery}, &again)
	env.Refusal(err, schemas.CodeForbidden)
}

func TestAGateListsMissingPermissionsAndNotifiesTheSession(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada, heard := env.Agent("ada"), make(chan schemas.Notice, 4)
	rig.Notices(env, ada, "S", heard)
	env.Ann().Allows(ada.Asks(rig.Permission("S", "", "r", "@network")))
	gate := func(tags ...string) []string {
		var reply schemas.GateReply
		env.NoError(ada.Conn.CallInto(env.Ctx, schemas.GateSubject("ada"), schemas.Gate{Type: schemas.TypeGate, SessionID: "S", GateID: "7", Name: "nightly", Permissions: tags}, &reply))
		return reply.Missing
	}
	env.Empty(gate("@network"))
	env.Equal([]string{"@read:/a", "nonsense"}, gate("@network", "@read:/a", "nonsense"))
	env.Equal(`Cron gate permissions not allowed for "nightly" (7): @read:/a, nonsense. The gate check was skipped and the task ran anyway.`, rig.Next(env, heard).Text)
}

// If nod can reach no approver, it refuses a new permission request. A repeated one still gets its receipt or
// decision.
func TestAskingAgainForAPermissionNeedsNoReachableApprover(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) {
		s.Settings = `{"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "tg", "user_id": "1"}]}]}}`
	})
	ada, ann := env.Agent("ada"), env.Person("tg", "1")
	env.Registers("tg", "w1", false)
	q := ada.Asks(rig.Permission("S", "1", "r", "@network"))
	open := ada.Asks(rig.Permission("S", "2", "r", "@read:/tmp"))
	env.Registers("tg", "w1", true)

	env.Equal(open.Receipt.Revision, ada.Asks(rig.Permission("S", "2", "r", "@read:/tmp")).Receipt.Revision)
	told := ann.Allows(q)
	env.Equal(told.DecisionID, ada.Gets(rig.Permission("S", "1", "r", "@network")).DecisionID)
	ada.Refused(rig.Permission("S", "3", "r", "@read:/etc"), schemas.CodeUndeliverable)
	env.NotContains(env.Armed(), "S.3")
}

package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// permission is a request for permission tags on devbox, the engine's host.
func permission(session, id, reason string, tags ...string) schemas.Request {
	return schemas.Request{
		SessionID: session, PendingID: id, Kind: schemas.KindPermission, Title: "Permission request", ActionType: schemas.ActionOther,
		ActionDetails: []byte("{}"), Permissions: tags, Reason: reason, Host: "devbox",
	}
}

// file is a tool call about a file on devbox.
func file(tool, session, path string) schemas.Request {
	r := call(tool, session, "")
	r.Host, r.Project = "devbox", filepath.Dir(path)
	r.ActionDetails = fmt.Appendf(nil, `{"file_path":%q,"cwd":%q}`, path, filepath.Dir(path))
	return r
}

// manages sets a session's permissions, which makes it a managed session.
func (e *env) manages(session string, set schemas.PermissionsChange) {
	e.t.Helper()
	_, err := e.owner().ChangeSession(e.ctx, schemas.SessionChange{SessionID: session, Permissions: &set})
	e.NoError(err)
}

func tree(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = errors.Join(os.MkdirAll(dir+"/in/sub", 0o755), os.MkdirAll(dir+"/out", 0o755), os.Symlink(dir+"/out", dir+"/in/link"), os.Symlink(dir+"/out/x", dir+"/in/sub/leak.txt"), os.Symlink(dir+"/nowhere", dir+"/in/dangling"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAManagedSessionIsAllowedWhatItsSetCoversAndAsksForTheRest(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.engines = 2 })
	ada, dir := env.Agent("ada"), tree(t)
	env.Equal(schemas.Allowed, ada.Gets(file("Read", "S", dir+"/out/x")).Outcome, "a session that is not managed goes by the rules")
	ada.Asks(file("Write", "S", dir+"/in/x")).Drop()

	env.manages("S", schemas.PermissionsChange{ReadDirs: &[]string{dir + "/in"}, WriteDirs: &[]string{dir + "/in/sub"}})
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
		env.Equal([]schemas.Reach{{Permissions: []string{access + dir + path}}}, env.stored(q.Key).Record.Remember, c.path)
		q.Drop()
	}
	env.Equal(schemas.Allowed, ada.Gets(lookup("S", "")).Outcome, "the session's permissions do not cover this tool")
	command := func(line string) schemas.Request {
		r := shell("S", "", line)
		r.Host, r.Project = "devbox", dir+"/in"
		r.ActionDetails = fmt.Appendf(nil, `{"command":%q,"cwd":%q}`, line, dir+"/in")
		return r
	}
	for _, line := range []string{"ls", "cat x sub/y | head -n 3", "cd sub && ls", "git status", "grep -n foo " + dir + "/in/x", "cat sub/*.md"} {
		env.Equal(schemas.Allowed, ada.Gets(command(line)).Outcome, line)
	}
	for _, line := range []string{"cat " + dir + "/out/x", "ls ..", "cat link/x", "cd .. && ls", "head -n3 ../out/x", "cat ~/x", "find / -name x", "ls link/../../out", "cat link/*", "cat < ../out/x", "wc -l < " + dir + "/out/x", "cat */../../out/x", "cat lin*/x", "cat sub/leak*.txt", "grep -lR x ."} {
		ada.Asks(command(line)).Drop()
	}
	env.NoError(os.WriteFile(dir+"/.git", []byte("gitdir: elsewhere\n"), 0o600))
	shown := ada.Asks(command("git show HEAD:out/x"))
	env.Equal([]schemas.Reach{{Permissions: []string{"@read:" + dir}}}, env.stored(shown.Key).Record.Remember, "git needs to read the whole repository around the directory")
	shown.Drop()
	fetch := call("WebFetch", "S", "")
	fetch.Host, fetch.ActionDetails = "devbox", []byte(`{"url":"https://example.org/","prompt":"x"}`)
	q := ada.Asks(fetch)
	env.Ann().Remembers(q, schemas.ScopeSession, 0)
	env.Equal(schemas.Allowed, ada.Gets(fetch).Outcome)
	elsewhere := file("Read", "S", dir+"/in/x")
	elsewhere.Host = "otherbox"
	ada.Asks(elsewhere).Drop() // the engine cannot follow links on another host
}

func TestRulesAndSecretsStandAboveASet(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) {
		s.settings = `{"permissions":{"deny":["Write(//**/never)"],"ask":["Write(//**/always)"],"tools":[{"name":"Peruse","needs":"read"}]},` + everybody[len(`{
	"permissions": {"allow": ["Lookup"], "deny": ["Forbidden"]},`):]
	})
	ada, dir := env.Agent("ada"), tree(t)
	env.manages("S", schemas.PermissionsChange{WriteDirs: &[]string{dir}})
	env.Equal(schemas.Allowed, ada.Gets(file("Write", "S", dir+"/x")).Outcome)
	env.Equal(schemas.Allowed, ada.Gets(file("Peruse", "S", dir+"/x")).Outcome)
	ada.Asks(file("Peruse", "S", "/etc/hostname")).Drop()
	env.Equal(schemas.Denied, ada.Gets(file("Write", "S", dir+"/never")).Outcome)
	for _, path := range []string{"/always", "/.env", "/id_rsa", "/.git/hooks/pre-commit"} {
		asked, err := ada.asker.Submit(env.ctx, file("Write", "S", dir+path))
		env.NoError(err)
		env.NotZero(asked.Receipt.Revision, "%s was decided at once", path)
		asked.Drop()
	}
}

func TestAskingForPermissionsGrantsWhatIsMissing(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.engines = 2 })
	ada, ann, dir := env.Agent("ada"), env.Ann(), tree(t)
	hears := func(r schemas.Request, d schemas.Decision) agents.AgentReply { return agents.DescribeDecision(&r, &d) }

	r := permission("S", "1", "build", "@write:"+dir+"/in")
	q := ada.Asks(r)
	ann.Allows(q)
	env.Equal(agents.AgentReply{Allowed: true, Text: "Permission granted for write access to " + dir + "/in."}, hears(r, q.Hears()))
	env.Equal(schemas.Allowed, ada.Gets(file("Write", "S", dir+"/in/sub/x")).Outcome)
	env.Equal(schemas.Allowed, ada.Gets(file("Read", "S", dir+"/out/x")).Outcome, "a grant takes nothing away")
	ada.Asks(file("Write", "S", dir+"/in/link/x")).Drop()
	ada.Asks(file("Write", "S2", dir+"/in/x")).Drop()

	r = permission("S", "2", "build", "@read:"+dir+"/in/sub")
	env.Equal(agents.AgentReply{Allowed: true, Text: "Permission already granted for read access to " + dir + "/in/sub."}, hears(r, ada.Gets(r)))

	q = ada.Asks(permission("S", "3", "fetch", "@read:"+dir+"/in", "@network", "@write:"+dir+"/in/link"))
	env.Equal([]schemas.Reach{{Permissions: []string{"@network", "@write:" + dir + "/out"}}}, env.stored("S.3").Record.Remember, "only the missing permissions, with links resolved")
	ann.Denies(q)
	r = permission("S", "3", "fetch", "@network")
	env.Equal(agents.AgentReply{Text: "Permission denied for network access."}, hears(r, q.Hears()))
	ada.Asks(permission("S", "4", "fetch", "@network")).Drop()
	env.Equal(1, env.loggedOf(schemas.LogGranted))
}

func TestRefusalsOfPermissionsComeInTheirOrder(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	ada.Asks(deploy("other", "1")).Drop()
	env.Agent("ben").Asks(deploy("bens", "1")).Drop()
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
		r := permission("S", "", c.reason, c.tags...)
		r.ActionDetails = fmt.Appendf(nil, `{"agent_id":%q}`, c.agent)
		_, err := ada.asker.Submit(env.ctx, r)
		env.EqualError(errors.Unwrap(err), c.says)
	}
	background := true
	_, err := env.owner().ChangeSession(env.ctx, schemas.SessionChange{SessionID: "S", Background: &background})
	env.NoError(err)
	r := permission("S", "", "r", "@network")
	r.ActionDetails = []byte(`{"agent_id":"other"}`)
	env.Contains(ada.Refused(r, schemas.CodeForbidden).Message, "Background agents cannot")
	env.apply(`{"approvers":{"people":[]}}`)
	ada.Refused(permission("S", "", "r", "@read:"), schemas.CodeUndeliverable) // this comes before the malformed tag
}

func TestAPermissionForAnotherSessionIsGrantedThere(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	ada.Asks(deploy("helper", "1")).Drop()
	r := permission("S", "", "the helper builds", "@network")
	r.ActionDetails = []byte(`{"agent_id":"helper"}`)
	env.Ann().Allows(ada.Asks(r))
	env.Equal(schemas.Allowed, ada.Gets(permission("helper", "", "r", "@network")).Outcome)
	ada.Asks(permission("S", "", "r", "@network")).Drop()
}

func TestAPermissionThatNobodyAnswersIsAnErrorAfterItsTime(t *testing.T) {
	t.Parallel()
	env := start(t)
	r := permission("S", "", "r", "@network")
	r.TimeoutSeconds = 1
	q := env.Agent("ada").Asks(r)
	d := q.Ends(schemas.TimedOut)
	heard := agents.DescribeDecision(&r, &d)
	env.True(heard.IsError)
	env.Equal("Permission request timed out after 1 second", heard.Text)
	env.Equal(15*time.Minute, schemas.DefaultPermissionTimeout)
}

func TestASessionSharesWhatItHolds(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada, dir := env.Agent("ada"), tree(t)
	share := func(to, reason string, tags ...string) error {
		var g schemas.Grants
		return ada.conn.CallInto(env.ctx, schemas.GrantSubject("ada"), schemas.Share{Type: schemas.TypeShare, SessionID: "S", AgentID: to, Permissions: tags, Reason: reason}, &g)
	}
	for _, session := range []string{"S", "helper", "third"} {
		ada.Asks(deploy(session, "")).Drop()
	}
	env.Agent("ben").Asks(deploy("bens", "")).Drop()
	granted := env.Ann().Allows(ada.Asks(permission("S", "", "r", "@write:"+dir))).Grant
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
	env.NoError(ada.conn.CallInto(env.ctx, schemas.GrantSubject("ada"), schemas.Share{
		Type: schemas.TypeShare, SessionID: "helper", AgentID: "third", Permissions: []string{"@read:" + dir + "/in/sub"}, Reason: "and so on",
	}, &g))
	env.Equal("helper", g.Grants[0].By.Name)
	env.NoError(env.owner().Revoke(env.ctx, granted)) // and all grants shared from it
	ada.Asks(file("Write", "helper", dir+"/in/x")).Drop()
	grants, err := env.owner().Grants(env.ctx, "")
	env.NoError(err)
	env.Len(grants, 3)
	for _, g := range grants {
		env.NotZero(g.RevokedAt, g.SessionID)
	}
}

// A shared permission expires with the grant that it was shared from.
func TestASharedPermissionLastsNoLongerThanItsSource(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada, ann := env.Agent("ada"), env.Ann()
	ada.Asks(deploy("helper", "")).Drop()
	q := ada.Asks(permission("S", "", "r", "@network"))
	source := ann.Remembers(q, schemas.ScopeSession, 3600).Grant
	var g schemas.Grants
	env.NoError(ada.conn.CallInto(env.ctx, schemas.GrantSubject("ada"), schemas.Share{Type: schemas.TypeShare, SessionID: "S", AgentID: "helper", Permissions: []string{"@network"}, Reason: "r"}, &g))
	env.Equal(source.ExpiresAt, g.Grants[0].ExpiresAt)
	env.Equal([]string{source.GrantID}, g.Grants[0].DerivedFrom)
	var again schemas.Grants
	env.NoError(ada.conn.CallInto(env.ctx, schemas.GrantSubject("ada"), schemas.Share{Type: schemas.TypeShare, SessionID: "S", AgentID: "helper", Permissions: []string{"@network"}, Reason: "r"}, &again))
	env.Equal(g.Grants, again.Grants, "sharing again changes nothing")
	err := env.conn(roles.ConnectorID("tg")).CallInto(env.ctx, schemas.QuerySubject("tg", schemas.QueryGrants), schemas.Query{Type: schemas.TypeQuery}, &again)
	env.refusal(err, schemas.CodeForbidden)
}

func TestAGateNamesWhatIsMissingAndTellsTheSession(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada, heard := env.Agent("ada"), make(chan schemas.Notice, 4)
	notices(env, ada, "S", heard)
	env.Ann().Allows(ada.Asks(permission("S", "", "r", "@network")))
	gate := func(tags ...string) []string {
		var reply schemas.GateReply
		env.NoError(ada.conn.CallInto(env.ctx, schemas.GateSubject("ada"), schemas.Gate{Type: schemas.TypeGate, SessionID: "S", GateID: "7", Name: "nightly", Permissions: tags}, &reply))
		return reply.Missing
	}
	env.Empty(gate("@network"))
	env.Equal([]string{"@read:/a", "nonsense"}, gate("@network", "@read:/a", "nonsense"))
	env.Equal(`Cron gate permissions not allowed for "nightly" (7): @read:/a, nonsense. The gate check was skipped and the task ran anyway.`, next(env, heard).Text)
}

// notices subscribes to the notices sent to a session.
func notices(env *env, a *agent, session string, heard chan schemas.Notice) {
	env.t.Helper()
	_, err := a.conn.Subscribe(schemas.NoticeSubject(a.name, session), func(m bus.Message) {
		var n schemas.Notice
		if schemas.Decode(m.Data, &n) == nil {
			heard <- n
		}
	})
	env.NoError(err)
	env.NoError(a.conn.Flush(env.ctx))
}

func next(env *env, heard chan schemas.Notice) schemas.Notice {
	env.t.Helper()
	select {
	case n := <-heard:
		return n
	case <-env.ctx.Done():
		env.FailNow("no notice came")
		return schemas.Notice{}
	}
}

// While no approver can be reached, asking for a permission again still returns its
// receipt or decision; a new request is refused.
func TestAPermissionThatIsAskedForAgainWhileNobodyCanBeShownIt(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) {
		s.settings = `{"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "tg", "user_id": "1"}]}]}}`
	})
	ada, ann := env.Agent("ada"), env.person("tg", "1")
	env.registers("tg", "w1", false)
	q := ada.Asks(permission("S", "1", "r", "@network"))
	open := ada.Asks(permission("S", "2", "r", "@read:/tmp"))
	env.registers("tg", "w1", true)

	env.Equal(open.Receipt.Revision, ada.Asks(permission("S", "2", "r", "@read:/tmp")).Receipt.Revision)
	told := ann.Allows(q)
	env.Equal(told.DecisionID, ada.Gets(permission("S", "1", "r", "@network")).DecisionID)
	ada.Refused(permission("S", "3", "r", "@read:/etc"), schemas.CodeUndeliverable)
	env.NotContains(env.armed(), "S.3")
}

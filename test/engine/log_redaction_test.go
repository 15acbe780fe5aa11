package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// The log contains no secret of a request, a rule, an answer or a freeze, and has a mark in the place of each
// secret. Digests and decisions are those of the original request, even if the request is sent again.
func TestTheLogHasNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2"
	settings := fmt.Sprintf(`{"log": {"payloads": true}, "permissions": {"deny": ["Bash(deploy --token=%s:*)"]},
		"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]}]}}`, secret)
	env := rig.Start(t, func(s *rig.Setup) { s.Settings, s.Engines = settings, 2 })
	ada, ann := env.Agent("ada"), env.Ann()

	write := rig.Call("Write", "S", "file")
	write.ActionType, write.ActionDetails = schemas.ActionFileWrite, fmt.Appendf(nil, `{"content":%q,"file_path":"/app/.env"}`, secret)
	asked := map[string]string{} // the digest of each request, by the request's id
	for _, r := range []schemas.Request{
		rig.Shell("S", "variable", "DB_PASSWORD="+secret+" make release"),
		rig.Shell("S", "address", "git clone https://ann:"+secret+"@example.com/x"),
		rig.Shell("S", "redirect", "echo "+secret+" > .env"),
		rig.Shell("S", "plain", "make release"),
		write,
	} {
		q := ada.Asks(r)
		asked[r.PendingID] = q.Receipt.Digest
		ann.Denies(q)
		q.Ends(schemas.Denied)
	}
	lasting := ada.Asks(rig.Shell("S", "lasting", "npm test -- --token "+secret))
	ann.Remembers(lasting, schemas.ScopeSession, 0)

	byRule := rig.Shell("S", "rule", "deploy --token="+secret+" now")
	denied := ada.Gets(byRule)
	env.Equal(schemas.Denied, denied.Outcome)
	env.Contains(denied.Message, secret, "the agent is told the rule as it is")
	reply, err := ada.Sends(byRule, true)
	env.NoError(err)
	var again schemas.Decision
	env.NoError(reply.Into(&again))
	env.Equal(denied, again, "the same call, sent again, gets the same decision")

	_, err = ann.Freeze(env.Ctx, schemas.FreezeRequest{Reason: "password=" + secret, From: rig.Ann()})
	env.NoError(err)
	frozen := ada.Gets(rig.Shell("S", "frozen", "ls"))
	env.Contains(frozen.Message, secret)

	env.Soon("all is logged", func() bool {
		return env.OutboxIdle() && env.LoggedOf(schemas.LogDecided) == 8 && env.LoggedOf(schemas.LogGranted) == 1 && env.LoggedOf(schemas.LogFrozen) == 1
	})
	stream, err := env.Raw.Stream(env.Ctx, "permission_log")
	env.NoError(err)
	marked := map[string]int{}
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		msg, err := stream.GetMsg(env.Ctx, seq)
		env.NoError(err)
		env.NotContains(string(msg.Data)+fmt.Sprint(msg.Header), secret)
		var e schemas.LogEntry
		env.NoError(json.Unmarshal(msg.Data, &e))
		env.Equal(strings.Count(string(msg.Data), "[redacted]"), e.Redacted, string(msg.Data))
		marked[e.PendingID] += e.Redacted
		if e.Kind == schemas.LogAsked && asked[e.PendingID] != "" {
			env.Equal(asked[e.PendingID], e.Digest)
			env.NotNil(e.Request)
		}
	}
	for _, id := range []string{"variable", "address", "redirect", "file", "lasting", "rule"} {
		env.Positive(marked[id], id)
	}
	env.Zero(marked["plain"])
	env.Positive(marked[""], "the grant and the freeze")
}

// A question may be decided before any engine has logged it. The log then has the question with its payload,
// and its decision, each once. This also holds for a repeated delivery and for joined calls.
func TestAQuestionThatIsDecidedAtOnceIsLogged(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) {
		s.Engines, s.Settings = 2, strings.Replace(rig.Everybody, `"permissions"`, `"log": {"payloads": true}, "permissions"`, 1)
	})
	ada := env.Agent("ada")
	env.StopOutbox()
	one := ada.Asks(rig.Shell("S", "one", "make release"))
	ada.Asks(rig.Shell("S", "two", "make release"))
	env.Ann().Allows(one)
	alone := ada.Asks(rig.Shell("S", "alone", "make other"))
	env.Ann().Denies(alone)
	byRule := ada.Gets(rig.Lookup("S", "rule"))
	env.Equal(schemas.Allowed, byRule.Outcome)
	stream, err := env.Raw.Stream(env.Ctx, "KV_pending_permissions")
	env.NoError(err)
	_, err = stream.ResumeConsumer(env.Ctx, "nod-outbox")
	env.NoError(err)
	env.Soon("the decisions are logged", func() bool {
		decided := env.Logged(schemas.LogDecided)
		return env.OutboxIdle() && decided["S.one"] == 1 && decided["S.alone"] == 1
	})
	asked := env.Logged(schemas.LogAsked)
	env.Equal([]int{1, 1, 0}, []int{asked["S.one"], asked["S.alone"], asked["S.rule"]})
	ada.Withdraws("S", "two")
	env.Soon("the withdrawal is logged", func() bool { return env.OutboxIdle() && env.Logged(schemas.LogDecided)["S.two"] == 1 })
	asked = env.Logged(schemas.LogAsked)
	env.Equal([]int{1, 1, 1, 0}, []int{asked["S.one"], asked["S.two"], asked["S.alone"], asked["S.rule"]})
}

package rig

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nodbus/nod/schemas"
)

// Everybody lets Ann and Bob answer every request. Its rules allow the tool Lookup and deny the tool
// Forbidden, and match no other tool.
const Everybody = `{
	"permissions": {"allow": ["Lookup"], "deny": ["Forbidden"]},
	"approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]},
		{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}]}
	]}
}`

// Apart adds options to settings, except those that the settings already have. With these options, each
// request is a question of its own, nod remembers no denials, and phones and chats show all questions.
func Apart(settings string) []byte {
	var all map[string]json.RawMessage
	permissions := map[string]json.RawMessage{"join_identical": []byte("false"), "remember_denials_seconds": []byte("0"), "open_prompts": []byte("0")}
	if json.Unmarshal([]byte(settings), &all) != nil || all["permissions"] != nil && json.Unmarshal(all["permissions"], &permissions) != nil {
		return []byte(settings) // the engine refuses these settings, because they are not valid
	}
	all["permissions"], _ = schemas.Encode(permissions) // Encode cannot fail, because the values were decoded from JSON
	data, _ := schemas.Encode(all)
	return data
}

// SomeOfIt lets Ann decide every request. Bob may decide requests of ada in one project, up to medium risk.
const SomeOfIt = `{
	"permissions": {"ask": ["Deploy"]},
	"approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]},
		{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}, {"connector": "tg", "user_id": "8"}],
		 "for": {"agents": ["ada"], "projects": ["/srv/shop/**"]}, "max_risk": "medium"}
	]}
}`

// AtTheTerminal lets the user who runs the tests answer as Ann at the terminal. Bob answers on
// the web.
func AtTheTerminal(t *testing.T) func(*Setup) {
	return func(s *Setup) {
		s.Settings = strings.Replace(Everybody, `"user_id": "ann"`, `"user_id": "`+Me(t)+`"`, 1)
	}
}

// Ann identifies the approver at the terminal as the sender of a message.
func Ann() schemas.From { return schemas.From{UserID: "ann"} }

// WithCarrier is Everybody with a second identity of Ann, on the carrier tg.
var WithCarrier = strings.Replace(Everybody, `"user_id": "ann"}`, `"user_id": "ann"}, {"connector": "tg", "user_id": "1001"}`, 1)

// Rules returns the settings of Everybody with other rules. The strings allow and deny each name a tool, or
// are empty for no rule.
func Rules(allow, deny string) string {
	list := func(tool string) []string { return strings.Fields(tool) }
	var s map[string]any
	_ = json.Unmarshal([]byte(Everybody), &s) // Unmarshal cannot fail, because the text is a constant
	s["permissions"] = map[string]any{"allow": list(allow), "deny": list(deny)}
	data, _ := json.Marshal(s)
	return string(data)
}

package rules

import (
	"strings"
	"testing"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

func TestEveryEngineFollowsTheSettings(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 3 })
	ada := env.Agent("ada")
	pending := ada.Asks(rig.Deploy("S", "1"))
	revision := env.Apply(rig.Rules("Deploy", "Lookup")) // Apply waits until every engine reports the revision
	for _, n := range env.Engines {
		r, err := n.SettingsRevision(env.Ctx)
		env.NoError(err)
		env.Equal(revision, r)
	}
	for range 20 { // so many requests that each engine handles some of them
		for tool, outcome := range map[string]schemas.Outcome{"Deploy": schemas.Allowed, "Lookup": schemas.Denied} {
			d := ada.Gets(rig.Call(tool, "S", bus.NewID()))
			env.Equal(outcome, d.Outcome)
			env.Equal(revision, d.SettingsRevision)
		}
	}
	env.Equal(revision, env.Ann().Denies(pending).SettingsRevision)

	state, err := env.Owner().Settings(env.Ctx)
	env.NoError(err)
	env.Equal(revision, state.Revision)
	env.Equal([]string{"Deploy"}, state.Settings.Permissions.Allow)
	env.Equal(revision, env.Apply(rig.Rules("Deploy", "Lookup")), "applying the same settings again changes nothing")

	env.Engines[0].Halt() // an engine that starts later must use the settings too
	late, err := env.Engine(engine.Options{}).SettingsRevision(env.Ctx)
	env.NoError(err)
	env.Equal(revision, late)
}

func TestInvalidSettingsAreRefusedWithTheFaultsPath(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	before, err := env.Owner().Settings(env.Ctx)
	env.NoError(err)
	identities := `"identities":[{"connector":"terminal","user_id":"ann"}]`
	for settings, path := range map[string]string{
		`{"permissions":{"alow":["Bash"]}}`:                                                                                                                     "permissions.alow: ",
		`{"permissions":{"allow":"Bash"}}`:                                                                                                                      "permissions.allow: ",
		`{"permissions":{"deny":["Deploy"],"allow":["("]}}`:                                                                                                     "permissions.allow[0]",
		`{"permissions":{"connected_timeout_seconds":-1}}`:                                                                                                      "permissions.connected_timeout_seconds: ",
		`{"permissions":{"connected_timeout_seconds":"60"}}`:                                                                                                    "permissions.connected_timeout_seconds: ",
		`{"permissions":{"disconnected_timeout_seconds":2592001}}`:                                                                                              "permissions.disconnected_timeout_seconds: ",
		`{"connectors":{"voice":{"permission_timeout_seconds":1.5}}}`:                                                                                           "connectors.voice.permission_timeout_seconds: ",
		`{"connectors":{"telegram":{"token":"777:AA"}}}`:                                                                                                        "connectors.telegram.token: ",
		`{"connectors":{"telegram":{"base_url":"https://x.example"}}}`:                                                                                          "connectors.telegram: needs token_env or token_file",
		`{"connectors":{"telegram":{"token_env":"A","token_file":"/a"}}}`:                                                                                       "connectors.telegram: needs token_env or token_file",
		`{"connectors":{"telegram":{"token_env":"A","base_url":"ftp://x"}}}`:                                                                                    "connectors.telegram.base_url: ",
		`{"connectors":{"telegram":{"token_env":"A","webhook":{"listen":"127.0.0.1:1"}}}}`:                                                                      "connectors.telegram.webhook",
		`{"connectors":{"telegram":{"token_env":"A","webhook":{"listen":"127.0.0.1:1","public_url":"http://x.example","secret_env":"B"}}}}`:                     "connectors.telegram.webhook.public_url: ",
		`{"connectors":{"telegram":{"token_env":"A","webhook":{"listen":"127.0.0.1:1","public_url":"https://x.example"}}}}`:                                     "connectors.telegram.webhook: needs secret_env or secret_file",
		`{"connectors":{"telegram":{"token_env":"A","webhook":{"listen":"127.0.0.1:1","public_url":"https://x.example","secret_env":"B","secret_file":"/b"}}}}`: "connectors.telegram.webhook: needs secret_env or secret_file",
		`{"connectors":{"telegram":{"token_env":"A","webhook":{"listen":"127.0.0.1:1","public_url":"https://x.example","secret_env":"B","key_file":"/k"}}}}`:    "connectors.telegram.webhook: needs both cert_file and key_file",
		`{"connectors":{"telegarm":{"token_env":"A"}}}`:                                                                                                         "connectors.telegarm: is not known here",
		`{"connectors":{"Telegram":{"token_env":"A"}}}`:                                                                                                         "connectors.Telegram: is not a field; write telegram",
		`{"connectors":{"telegram":"A"}}`:                                                                                                                       "connectors.telegram: must be of type object",
		`{"approvers":{"people":[{"name":"Ann"}]}}`:                                                                                                             "approvers.people[0].identities: ",
		`{"approvers":{"people":[{"name":"A",` + identities + `},{"name":"B",` + identities + `}]}}`:                                                            "approvers.people[1].identities[0]: ",
		`{"approvers":`: "not JSON",
		`[]`:            "not a JSON object",
	} {
		// nod refuses these settings both from the owner's command, which can send only JSON, and from nod up
		// at its start.
		if !strings.HasPrefix(path, "not JSON") {
			_, err := env.Owner().ApplySettings(env.Ctx, []byte(settings))
			env.Contains(env.Refusal(err, schemas.CodeValidation).Message, strings.TrimPrefix(path, "not a JSON object"), settings)
		}
		_, err := env.Engines[0].ApplySettings(env.Ctx, []byte(settings), "test")
		env.Contains(env.Refusal(err, schemas.CodeValidation).Message, path, settings)
	}
	bare := env.Engine(engine.Options{Channels: []schemas.ChannelSettings{}})
	_, err = bare.ApplySettings(env.Ctx, []byte(`{"connectors":{"telegram":{"token_env":"A"}}}`), "test")
	env.Contains(env.Refusal(err, schemas.CodeValidation).Message, "connectors.telegram: is not known here", "an engine without channels")
	after, err := env.Owner().Settings(env.Ctx)
	env.NoError(err)
	env.Equal(before, after)
	_, revision, err := env.Store.Settings.Document(env.Ctx, "settings")
	env.NoError(err)
	env.Equal(before.Revision, revision, "nothing was written")
	env.Equal(schemas.Allowed, env.Agent("ada").Gets(rig.Lookup("S", "")).Outcome)
	env.Agent("ada").Asks(rig.Deploy("S", ""))
}

// Engines do not apply invalid settings that were stored without a check.
func TestInvalidStoredSettingsAreNotFollowed(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	_, revision, err := env.Store.Settings.Document(env.Ctx, "settings")
	env.NoError(err)
	_, err = env.Store.Settings.PutDocument(env.Ctx, "settings", []byte(`{"permissions":{"allow":["Deploy"],"deny":17}}`), revision)
	env.NoError(err)
	_, err = env.Engines[0].SettingsRevision(env.Ctx) // SettingsRevision reads the stored settings
	env.ErrorContains(err, "permissions.deny")
	env.Agent("ada").Asks(rig.Deploy("S", "1"))
	state, err := env.Owner().Settings(env.Ctx)
	env.NoError(err)
	env.Equal(revision, state.Revision)
}

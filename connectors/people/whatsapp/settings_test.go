package whatsapp_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/whatsapp"
	"github.com/nodbus/nod/connectors/people/whatsapp/whatsapptest"
	"github.com/nodbus/nod/schemas"
)

const rest = `"phone_number_id": "106540352242922", "webhook": {"listen": "127.0.0.1:4284", "verify_token_env": "V"}`

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"token_env": "T", "app_secret_file": "/s", ` + rest + `}`:                                                                                    "",
		`{"token_env": "T", "app_secret_env": "S", "template": {"name": "nod_request", "language": "en_US"}, ` + rest + `}`:                            "",
		`{"app_secret_file": "/s", ` + rest + `}`:                                                                                                      "needs token_env or token_file",
		`{"token_env": "T", "token_file": "/t", "app_secret_file": "/s", ` + rest + `}`:                                                                "needs token_env or token_file",
		`{"token_env": "T", ` + rest + `}`:                                                                                                             "needs app_secret_env or app_secret_file",
		`{"token_env": "T", "app_secret_env": "S", "phone_number_id": "1065", "webhook": {"listen": "x"}}`:                                             "needs verify_token_env or verify_token_file",
		`{"token_env": "T", "app_secret_env": "S", "phone_number_id": "1065", "webhook": {"listen": "x", "verify_token_env": "V", "cert_file": "/c"}}`: "needs both cert_file and key_file",
		`{"token_env": "T", "app_secret_env": "S", "phone_number_id": "+1 555", "webhook": {"listen": "x", "verify_token_env": "V"}}`:                  "phone_number_id",
		`{"token_env": "T", "app_secret_env": "S", "phone_number_id": "1065"}`:                                                                         "webhook",
		`{"token": "EAAG", "app_secret_env": "S", ` + rest + `}`:                                                                                       "token",
	} {
		_, err := schemas.DecodeSettings([]byte(`{"connectors": {"whatsapp": `+text+`}}`), whatsapp.Channel.Settings)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, want, text)
	}
}

func TestInvalidSettingsAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
		return path
	}
	good := func() whatsapp.Settings {
		return whatsapp.Settings{
			PhoneNumberID: whatsapptest.Number, TokenFile: file("token", whatsapptest.Token), AppSecretFile: file("secret", whatsapptest.AppSecret),
			Webhook: whatsapp.WebhookSettings{Listen: "127.0.0.1:4284", VerifyTokenFile: file("verify", whatsapptest.VerifyToken)},
		}
	}
	for want, change := range map[string]func(*whatsapp.Settings){
		"":                                               func(*whatsapp.Settings) {},
		"connectors.whatsapp.token_file":                 func(s *whatsapp.Settings) { s.TokenFile = dir },
		"one word of ASCII characters":                   func(s *whatsapp.Settings) { s.TokenFile = file("two", "secretsecret two") },
		"app secret has less than 16":                    func(s *whatsapp.Settings) { s.AppSecretFile = file("short", "secret") },
		"verify token must have at least 16":             func(s *whatsapp.Settings) { s.Webhook.VerifyTokenFile = file("short", "secret") },
		"connectors.whatsapp.webhook.listen: without":    func(s *whatsapp.Settings) { s.Webhook.Listen = "0.0.0.0:4284" },
		"connectors.whatsapp.webhook.listen: it must be": func(s *whatsapp.Settings) { s.Webhook.Listen = "4284" },
		"cert_file":                                      func(s *whatsapp.Settings) { s.Webhook.CertFile, s.Webhook.KeyFile = dir, dir },
		"it must begin with https://":                    func(s *whatsapp.Settings) { s.BaseURL = "http://proxy.example/v24.0" },
		"it must be a plain address such as https://graph.facebook.com/v24.0":    func(s *whatsapp.Settings) { s.BaseURL = "https://me:secretsecret@proxy.example" },
		"connectors.whatsapp.webhook.verify_token_env: the environment variable": func(s *whatsapp.Settings) { s.Webhook.VerifyTokenFile, s.Webhook.VerifyTokenEnv = "", "NOD_TEST_NONE" },
	} {
		s := good()
		change(&s)
		_, err := whatsapp.Open(s, slog.New(slog.DiscardHandler))
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secretsecret")
	}
}

// Only the server in the settings receives the access token, and no error contains a secret.
func TestTheTokenIsSentToNoOtherServer(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a request was sent elsewhere: %s", r.URL)
	}))
	defer elsewhere.Close()
	w := newWorld(t)
	for name, reply := range map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
		},
		"an echo": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": 100, "message": r.Header.Get("Authorization") + whatsapptest.AppSecret}})
		},
		"no JSON":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"another JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"messages":"x"}`)) },
		"no message":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) },
	} {
		server := httptest.NewServer(reply)
		w.open(func(o *whatsapp.Options) { o.BaseURL = server.URL })
		_, err := w.carrier.Prompt(t.Context(), w.desk.prompt)
		require.Error(t, err, name)
		server.Close()
		_, gone := w.carrier.Prompt(t.Context(), w.desk.prompt)
		require.Error(t, gone, "nobody listens")
		for _, secret := range secrets {
			require.NotContains(t, err.Error()+gone.Error(), secret, name)
		}
	}
	w.open()
	require.NoError(t, w.carrier.Check(t.Context()))
	w.open(func(o *whatsapp.Options) { o.Token = "other" })
	require.ErrorContains(t, w.carrier.Check(t.Context()), "Meta refuses the access token")
}

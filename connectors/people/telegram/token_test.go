package telegram_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/telegram"
)

func TestInvalidSettingsAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	log := slog.New(slog.DiscardHandler)
	t.Setenv("NOD_TEST_TOKEN", "")
	for want, s := range map[string]telegram.Settings{
		"":                                {TokenFile: file},
		"it must begin with https://":     {TokenFile: file, BaseURL: "http://proxy.example"},
		"it must be a plain address":      {TokenFile: file, BaseURL: "https://me:" + "secretsecret" + "@proxy.example"},
		"token_file":                      {TokenFile: filepath.Join(dir, "none")},
		"NOD_TEST_TOKEN is not set":       {TokenEnv: "NOD_TEST_TOKEN"},
		"copy the one from @BotFather":    {TokenEnv: "PATH"},
		"connectors.telegram.token_file:": {TokenFile: dir},
	} {
		_, err := telegram.Open(s, log)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secretsecret")
	}
}

// Only the server in the settings receives the token, and no error contains it.
func TestTheTokenIsSentToNoOtherServer(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a request was sent elsewhere: %s", r.URL)
	}))
	defer elsewhere.Close()
	replies := map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
		},
		"its address": func(w http.ResponseWriter, r *http.Request) { http.Error(w, r.URL.Path, http.StatusBadRequest) },
		"an echo": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"ok":false,"error_code":400,"description":"no such path ` + r.URL.Path + `"}`))
		},
		"no JSON":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"another JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"ok":true,"result":"x"}`)) },
	}
	d := newDesk(t)
	for name, reply := range replies {
		server := httptest.NewServer(reply)
		c, err := telegram.New(server.URL, token, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		_, err = c.Prompt(t.Context(), d.prompt)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "secretsecret", name)
		server.Close()
		_, err = c.Prompt(t.Context(), d.prompt)
		require.Error(t, err, "nobody listens")
		require.NotContains(t, err.Error(), "secretsecret", name)
	}
}

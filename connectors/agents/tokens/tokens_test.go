package tokens_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/tokens"
	"github.com/nodbus/nod/connectors/agents/tokens/tokenstest"
)

// service returns a service with these jobs, in which it replaces ISSUER by the issuer's URL.
func service(t *testing.T, i *tokenstest.Issuer, jobs string) *tokens.Service {
	t.Helper()
	s, err := tokens.Parse([]byte(`{"jobs": [` + strings.ReplaceAll(jobs, "ISSUER", i.URL) + `]}`))
	require.NoError(t, err)
	service, err := tokens.New(s, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return service
}

const web = `{"issuer": "ISSUER", "audience": "nod", "match": {"repository": "acme/*", "ref": "refs/heads/main"}, "agent": "ci-web"}`

func refused(t *testing.T, s *tokens.Service, agent, token string, words ...string) {
	t.Helper()
	until, err := s.Check(t.Context(), agent, token)
	require.Error(t, err)
	require.Zero(t, until)
	require.NotContains(t, err.Error(), "\n")
	if len(token) > 20 {
		require.NotContains(t, err.Error(), token, "an error never has the token")
	}
	for _, w := range words {
		require.ErrorContains(t, err, w)
	}
}

func TestAValidTokenAdmitsItsJob(t *testing.T) {
	i := tokenstest.New(t)
	s := service(t, i, web)
	end := time.Now().Add(time.Minute).Truncate(time.Second)
	token := i.Token(map[string]any{"exp": end.Unix()})
	for range 3 { // several connections of a job use one token
		until, err := s.Check(t.Context(), "ci-web", token)
		require.NoError(t, err)
		require.True(t, until.Equal(end), until)
	}
	require.Equal(t, 2, i.Asked(), "the description and the keys are read once")
	until, err := s.Check(t.Context(), "ci-web", i.Token(map[string]any{"exp": time.Now().AddDate(1, 0, 0).Unix(), "aud": []string{"other", "nod"}}))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), until, time.Minute, "a long token is checked again each hour")
}

func TestInvalidTokensAreRefused(t *testing.T) {
	i, other := tokenstest.New(t), tokenstest.New(t)
	s := service(t, i, web)
	for name, token := range i.Invalid(other) {
		t.Run(name, func(t *testing.T) { refused(t, s, "ci-web", token) })
	}
	_, err := s.Check(t.Context(), "ci-web", i.Token(nil))
	require.NoError(t, err)
}

func TestClaimsMustMatch(t *testing.T) {
	i := tokenstest.New(t)
	s := service(t, i, web+`,{"issuer": "ISSUER", "audience": "nod", "match": {"/kubernetes.io/namespace": "prod", "sub": "system:serviceaccount:prod:*"}, "agent": "k8s-prod"}`)
	for name, changes := range map[string]map[string]any{
		"another repository": {"repository": "evil/web"}, "ends alike": {"repository": "evil/acme/web"}, "begins alike": {"repository": "acme/web/evil"},
		"another branch": {"ref": "refs/heads/main2"}, "a branch with a line": {"ref": "refs/heads/main\n"}, "no ref": {"ref": nil}, "an empty ref": {"ref": ""},
		"a list": {"ref": []string{"refs/heads/main"}}, "an object": {"ref": map[string]any{"refs/heads/main": true}}, "a number": {"repository": 7}, "true": {"ref": true},
		"another case": {"ref": nil, "REF": "refs/heads/main"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, s, "ci-web", i.Token(changes), "jobs[0]") })
	}
	refused(t, s, "ci-web2", i.Token(nil), "NOD_AGENT")
	refused(t, s, "", i.Token(nil))

	pod := map[string]any{"sub": "system:serviceaccount:prod:builder", "kubernetes.io": map[string]any{"namespace": "prod"}, "repository": nil}
	_, err := s.Check(t.Context(), "k8s-prod", i.Token(pod))
	require.NoError(t, err)
	for _, flat := range []any{"prod", []any{"prod"}, nil, map[string]any{"namespace": "dev"}, map[string]any{"namespace": map[string]any{"namespace": "prod"}}} {
		pod["kubernetes.io"] = flat
		refused(t, s, "k8s-prod", i.Token(pod))
	}
	pod["kubernetes.io"], pod["/kubernetes.io/namespace"] = nil, "prod"
	refused(t, s, "k8s-prod", i.Token(pod))
}

func TestAClaimInANameCannotChooseAnotherName(t *testing.T) {
	i := tokenstest.New(t)
	s := service(t, i, `{"issuer": "ISSUER", "audience": "nod", "match": {"repository": "acme/*"}, "agent": "ci-{{repository_id}}"}`)
	_, err := s.Check(t.Context(), "ci-7", i.Token(nil))
	require.NoError(t, err)
	refused(t, s, "ci-8", i.Token(nil), "its agent is ci-7")
	for _, id := range []any{"*", ">", ".>", "x.y", "7 ", "7\n", "", "é", "a/b", "{{sub}}", strings.Repeat("7", 126), 7, 7.5, true, nil, []string{"7"}, map[string]any{"7": "7"}} {
		token := i.Token(map[string]any{"repository_id": id})
		refused(t, s, fmt.Sprint("ci-", id), token)
		refused(t, s, "ci-7", token)
	}
}

func TestSettingsThatAdmitTooManyAreRefused(t *testing.T) {
	job := func(changes string) string {
		fields := map[string]any{"issuer": "https://token.actions.githubusercontent.com", "audience": "nod", "match": map[string]string{"repository_owner_id": "1"}, "agent": "ci-web"}
		if changes != "" {
			require.NoError(t, json.Unmarshal([]byte(changes), &fields))
		}
		text, err := json.Marshal(fields)
		require.NoError(t, err)
		return string(text)
	}
	_, err := tokens.Parse([]byte(`{"jobs": [` + job("") + `,` + job(`{"match": {"ref": "x", "repository": "acme/*"}}`) + `]}`))
	require.NoError(t, err)
	for name, c := range map[string]struct{ jobs, word string }{
		"no jobs":              {"", "jobs is empty"},
		"an empty match":       {job(`{"match": null}`), "every job of everyone"},
		"only wildcards":       {`{"issuer": "https://idp.example", "audience": "nod", "match": {"sub": "**", "repository": "*/*"}, "agent": "ci-web"}`, "every job of everyone"},
		"no owner":             {job(`{"match": null}`)[:0] + `{"issuer": "https://token.actions.githubusercontent.com", "audience": "nod", "match": {"ref": "refs/heads/main"}, "agent": "ci-web"}`, "your own repositories"},
		"an open owner":        {`{"issuer": "https://gitlab.com", "audience": "nod", "match": {"namespace_path": "acme*"}, "agent": "ci-web"}`, "your own repositories"},
		"no audience":          {job(`{"audience": ""}`), "audience"},
		"no TLS":               {job(`{"issuer": "http://idp.example"}`), "https://"},
		"no URL":               {job(`{"issuer": "idp"}`), "URL"},
		"no agent":             {job(`{"agent": ""}`), "agent"},
		"a subject":            {job(`{"agent": "ci.web"}`), "agent"},
		"any agent":            {job(`{"agent": "{{repository_id}}"}`), "any name"},
		"nearly any agent":     {job(`{"agent": "c{{repository_id}}"}`), "any name"},
		"two claims":           {job(`{"agent": "ci-{{repository_id}}-{{ref}}"}`), "at most one claim"},
		"an empty pattern":     {job(`{"match": {"sub": ""}}`), "empty"},
		"an unknown field":     {job(`{"role": "owner"}`), "role"},
		"more after it":        {job("") + `]} {"x": [`, "more after"},
		"a name and a claim":   {job("") + "," + job(`{"agent": "ci-{{repository_id}}"}`), "same name"},
		"two claims, one name": {job(`{"agent": "ci-{{repository_id}}"}`) + "," + job(`{"agent": "ci-{{repository_owner_id}}"}`), "same name"},
		"two issuers":          {job(`{"agent": "ci-{{repository_id}}"}`) + "," + job(`{"issuer": "https://idp.example", "agent": "ci-{{repository_id}}"}`), "same name"},
		"two authorities":      {job(`{"ca_file": "a.pem"}`) + "," + job(`{"ca_file": "b.pem"}`), "two values of ca_file"},
		"one authority of two": {job(`{"ca_file": "a.pem"}`) + "," + job(""), "two values of ca_file"},
		"a longer beginning":   {job(`{"agent": "ci-{{repository_id}}"}`) + "," + job(`{"agent": "ci-x-{{repository_id}}"}`), "same name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tokens.Parse([]byte(`{"jobs": [` + c.jobs + `]}`))
			require.ErrorContains(t, err, c.word)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	s, err := tokens.Parse([]byte(`{"jobs": [` + job(`{"agent": "ci-{{repository_id}}"}`) + "," + job(`{"agent": "web"}`) + `]}`))
	require.NoError(t, err)
	for name, could := range map[string]bool{"ci-7": true, "ci-x-y": true, "ci-": false, "ci": false, "web": false, "local": false} {
		_, ok := s.CouldName(name)
		require.Equal(t, could, ok, name)
	}
	_, err = tokens.Read(t.TempDir() + "/none.json")
	require.ErrorContains(t, err, "docs/ci.md")
	for text, word := range map[string]string{"": "is empty", "[]": "a JSON array", `{"jobs": [{"match": {"a": 1}}]}`: "jobs.match has a value of the wrong type, a JSON number"} {
		_, err := tokens.Parse([]byte(text))
		require.ErrorContains(t, err, word)
	}
}

func TestAnIssuerChangesItsKeys(t *testing.T) {
	i := tokenstest.New(t)
	s := service(t, i, web)
	old := i.Token(nil)
	// The library joins a request for the keys that has just ended, so a change at that moment is seen by the
	// next request.
	becomes := func(valid bool, token string) {
		require.Eventually(t, func() bool {
			_, err := s.Check(t.Context(), "ci-web", token)
			return valid == (err == nil)
		}, 10*time.Second, 50*time.Millisecond)
	}
	becomes(true, old)
	i.AddKey()
	becomes(true, i.Token(nil)) // the new key is found
	_, err := s.Check(t.Context(), "ci-web", old)
	require.NoError(t, err, "the old key is still published")
	i.DropOldKeys()
	i.AddKey()
	becomes(true, i.Token(nil))
	becomes(false, old)
	refused(t, s, "ci-web", old)
}

// Anybody can send tokens with unknown keys. nod sends the issuer a request for only a few of these tokens.
func TestUnknownKeysDoNotFloodTheIssuer(t *testing.T) {
	i := tokenstest.New(t)
	s := service(t, i, web)
	foreign, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	began := time.Now()
	for n := range 200 {
		refused(t, s, "ci-web", tokenstest.Sign(t, jose.ES256, foreign, fmt.Sprint(n), i.Claims(nil)))
	}
	require.Less(t, i.Asked(), 8+int(time.Since(began).Seconds()))
	_, err = s.Check(t.Context(), "ci-web", i.Token(nil))
	require.NoError(t, err, "known keys need no question")
}

func TestAnIssuerThatDoesNotReplyAdmitsNobody(t *testing.T) {
	i := tokenstest.New(t)
	i.Hang()
	s := service(t, i, web)
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	token := i.Token(nil)
	began := time.Now()
	_, err := s.Check(soon(), "ci-web", token)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), 2*time.Second)
	i.Reply(http.StatusServiceUnavailable)
	require.Eventually(t, func() bool {
		_, err := s.Check(soon(), "ci-web", token)
		return err != nil && strings.Contains(err.Error(), "503")
	}, 20*time.Second, 100*time.Millisecond)
	i.Reply(http.StatusFound)
	require.Never(t, func() bool {
		_, err := s.Check(soon(), "ci-web", token)
		return err == nil
	}, 200*time.Millisecond, 50*time.Millisecond)
	i.Reply(http.StatusOK)
	require.Eventually(t, func() bool {
		_, err := s.Check(soon(), "ci-web", token)
		return err == nil
	}, 20*time.Second, 100*time.Millisecond)
	i.Hang()
	_, err = s.Check(soon(), "ci-web", i.Token(nil))
	require.NoError(t, err, "known keys are used while the issuer is away")
	i.AddKey()
	_, err = s.Check(soon(), "ci-web", i.Token(nil))
	require.Error(t, err)
}

// If an issuer withdraws a key, nod refuses tokens with that key after at most 20 minutes, even if no
// other token makes nod read the issuer's keys.
func TestAWithdrawnKeyEnds(t *testing.T) {
	i := tokenstest.New(t)
	s := service(t, i, web)
	token := i.Token(map[string]any{"exp": time.Now().AddDate(0, 0, 1).Unix()})
	_, err := s.Check(t.Context(), "ci-web", token)
	require.NoError(t, err)
	i.AddKey()
	i.DropOldKeys()
	s.SetClock(func() time.Time { return time.Now().Add(21 * time.Minute) })
	refused(t, s, "ci-web", token, "signature")

	i.Hang()
	s.SetClock(func() time.Time { return time.Now().Add(42 * time.Minute) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Check(ctx, "ci-web", i.Token(nil))
	require.ErrorIs(t, err, context.DeadlineExceeded, "keys that cannot be read anew no longer count")
}

package slack_test

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/slack"
	"github.com/nodbus/nod/connectors/people/slack/slacktest"
	"github.com/nodbus/nod/schemas"
)

// If Slack asks for another connection, nod opens it before the old connection closes. Until then nod
// reads from both connections.
func TestTheConnectionIsRenewed(t *testing.T) {
	w := newWorld(t)
	m := w.shows()
	for _, reason := range []string{"warning", "refresh_requested"} {
		w.Disconnect(reason)
		w.waits(func() bool { return w.Connected() == 1 })
	}
	w.presses(m, "✅ Allow once")
	w.told("Allowed once")
	w.waits(func() bool { return w.Unconfirmed() == 0 })
}

// If a connection breaks, Run returns a temporary error. If Socket Mode is switched off, the
// error is permanent and says so. If Slack limits the rate of new connections, the error contains
// the time to wait.
func TestTheEndOfAConnection(t *testing.T) {
	temporary := func(e *people.Error) bool { return !e.Permanent && !e.Unreachable && e.After == 0 }
	for name, c := range map[string]struct {
		end  func(*world)
		want func(*people.Error) bool
		text string
	}{
		"broken":       {func(w *world) { w.Drop() }, temporary, "socket mode"},
		"switched off": {func(w *world) { w.Disconnect("link_disabled") }, func(e *people.Error) bool { return e.Permanent }, "Socket Mode is switched off"},
		"too many": {func(w *world) { w.Limit(1); w.Disconnect("warning") }, func(e *people.Error) bool { return e.After == time.Second },
			"ratelimited"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ended := make(chan error, 1)
			go func() { ended <- w.stopped() }()
			c.end(w)
			err := <-ended
			var e *people.Error
			require.True(t, errors.As(err, &e), "%v", err)
			require.True(t, c.want(e), "%+v", e)
			require.ErrorContains(t, err, c.text)
			require.NotContains(t, err.Error(), "secretsecret")
		})
	}
}

// Slack may send an envelope again over another connection. Neither an answer nor a thaw then
// takes effect twice, even if the second envelope reaches a worker that started later.
func TestEnvelopesCountOnce(t *testing.T) {
	w := newWorld(t)
	m := w.shows()
	w.presses(m, "⛔ Deny")
	w.told("Denied")
	w.Command(ann, "thaw", "")
	w.told("Thawed")
	w.waits(func() bool { return w.Unconfirmed() == 0 })
	read := len(w.Server.Read(ann))
	w.Replay()
	w.Command(ann, "thaw", "") // nod handles the envelopes of one person in order
	w.waits(func() bool { return len(w.Server.Read(ann)) > read })
	w.Len(w.Server.Read(ann), read+1)
	w.Len(w.desk.Answers(), 1)
	w.Equal(2, w.desk.Freezes())
}

// If Slack limits the rate of calls, the worker waits as long as Slack says, or 30 s if Slack
// names no time.
func TestRateLimitsAreObeyed(t *testing.T) {
	w := newWorld(t)
	for want, fault := range map[time.Duration]slacktest.Fault{
		30 * time.Second: {Status: http.StatusTooManyRequests},
		90 * time.Second: {Status: http.StatusTooManyRequests, Code: "ratelimited", RetryAfter: 90},
		24 * time.Hour:   {Status: http.StatusTooManyRequests, RetryAfter: 99999999},
	} {
		w.rig.Fail(fault)
		_, err := w.carrier.Prompt(w.ctx, w.desk.Prompt)
		var e *people.Error
		w.True(errors.As(err, &e))
		w.Equal(want, e.After)
	}
	w.Empty(w.Chat(ann))
}

// The error that Slack returns decides whether the worker sends a message again.
func TestErrorsOfSlackAreToldApart(t *testing.T) {
	w := newWorld(t)
	for code, want := range map[string]people.Error{
		"user_not_found":   {Unreachable: true},
		"missing_scope":    {Permanent: true},
		"token_revoked":    {Permanent: true},
		"internal_error":   {},
		"some_new_problem": {Permanent: true},
	} {
		w.rig.Fail(slacktest.Fault{Status: http.StatusOK, Code: code})
		_, err := w.carrier.Prompt(w.ctx, w.desk.Prompt)
		var e *people.Error
		w.True(errors.As(err, &e))
		w.Equal(want, people.Error{Unreachable: e.Unreachable, Permanent: e.Permanent, After: e.After}, code)
	}
	m := w.shows()
	w.Delete(ann)
	ref := people.Ref("D" + ann + "/" + m.TS)
	ended := w.desk.Prompt
	ended.Decision = &schemas.Decision{Outcome: schemas.TimedOut}
	w.NoError(w.carrier.Settle(w.ctx, ref, ended), "a deleted message")
	var e *people.Error
	w.True(errors.As(w.carrier.(people.Reviser).Revise(w.ctx, ref, w.desk.Prompt), &e))
	w.True(e.Permanent)
}

func TestTokensAreChecked(t *testing.T) {
	for want, args := range map[string][3]string{
		"":                         {"", slacktest.BotToken, slacktest.AppToken},
		"must begin with xoxb-":    {"", "xoxp-secretsecret", slacktest.AppToken},
		"must begin with xapp-":    {"", slacktest.BotToken, slacktest.BotToken},
		"must begin with https://": {"http://proxy.example/api", slacktest.BotToken, slacktest.AppToken},
	} {
		_, err := slack.New(args[0], args[1], args[2], slog.New(slog.DiscardHandler))
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secretsecret")
	}
	for text, want := range map[string]string{
		`{"bot_token_env": "B", "app_token_file": "/a"}`:                        "",
		`{"bot_token_env": "B"}`:                                                "needs app_token_env or app_token_file",
		`{"bot_token_env": "B", "bot_token_file": "/b", "app_token_env": "A"}`:  "needs bot_token_env or bot_token_file",
		`{"bot_token_env": "B", "app_token_env": "A", "bot_token": "xoxb-1"}`:   "bot_token",
		`{"bot_token_env": "B", "app_token_env": "A", "base_url": "slack.com"}`: "base_url",
	} {
		_, err := schemas.DecodeSettings([]byte(`{"connectors": {"slack": `+text+`}}`), slack.Channel.Settings)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, want, strings.TrimSpace(text))
	}
	w := newWorld(t)
	require.NoError(t, w.carrier.(*slack.Carrier).Check(t.Context()))
	other, err := slack.New(w.URL(), "xoxb-other", slacktest.AppToken, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.ErrorContains(t, other.Check(t.Context()), "Slack refuses the token")
}

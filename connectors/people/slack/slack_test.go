package slack_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/slack"
	"github.com/nodbus/nod/connectors/people/slack/slacktest"
)

// rig is an in-memory Slack with the users of package peopletest. It fails the test if the carrier makes
// a call that a correct client never makes.
type rig struct {
	t *testing.T
	*slacktest.Server
}

func newRig(t *testing.T) *rig {
	r := &rig{t, slacktest.New()}
	r.Unlimited()
	for _, user := range []string{peopletest.Ann, peopletest.Bob, peopletest.Mallory} {
		r.Start(user)
	}
	t.Cleanup(func() {
		r.Close()
		require.Empty(t, r.Rejected())
	})
	return r
}

var features = peopletest.Features{Buttons: true, Edits: true, Reasons: true, Scopes: true, AgentOptions: true, Unkept: true}

func TestTheSuite(t *testing.T) {
	peopletest.Run(t, features, func(t *testing.T) peopletest.Rig { return newRig(t) }, slacktest.BotToken, slacktest.AppToken, "secretsecret")
}

func (r *rig) Open(log *slog.Logger) people.Carrier {
	c, err := slack.New(r.URL(), slacktest.BotToken, slacktest.AppToken, log)
	require.NoError(r.t, err)
	return c
}

// Read lists the texts that a person saw. While a dialog is open, the message under which it was
// opened has the dialog's text and buttons instead of its own.
func (r *rig) Read(user string) (all []peopletest.Message) {
	looks := map[string]peopletest.Message{}
	for _, m := range r.Chat(user) {
		looks[m.TS] = r.message(m)
	}
	if d, open := r.Server.Open(user); open {
		m := looks[d.About]
		m.Text += "\n" + d.Text
		m.Choices = choices(d.Buttons)
		looks[d.About] = m
	}
	for _, read := range r.Server.Read(user) {
		require.Empty(r.t, read.Links)
		if read.TS == "" {
			all = append(all, peopletest.Message{Text: read.Text})
		} else {
			all = append(all, looks[read.TS])
		}
	}
	return all
}

func (r *rig) message(m slacktest.Message) peopletest.Message {
	return peopletest.Message{ID: m.TS, Text: strings.ReplaceAll(m.Text, "\nThe same line goes on:\n", ""), Choices: choices(m.Buttons)}
}

func choices(buttons []slacktest.Button) (all []peopletest.Choice) {
	for _, b := range buttons {
		all = append(all, peopletest.Choice{Kind: peopletest.KindOf(b.Label), Label: b.Label, Token: b.Value})
	}
	return all
}

func (r *rig) Does(user string, act peopletest.Act) bool {
	owner := user
	if act.Of != "" {
		owner = act.Of
	}
	switch {
	case act.Press != "":
		if d, open := r.Server.Open(user); open && d.About == act.Message {
			r.PressInDialog(user, act.Press)
		} else {
			r.Press(user, owner, act.Message, act.Press)
		}
		return true
	case act.Reason != "":
		return r.deny(user, act.Message, act.Reason)
	}
	return false
}

// deny presses the button for a denial with a reason, enters the reason in the dialog and sends
// it.
func (r *rig) deny(user, ts, reason string) bool {
	for _, m := range r.Chat(user) {
		for _, b := range m.Buttons {
			if m.TS != ts || b.Label != "Deny, say why" {
				continue
			}
			r.Press(user, user, ts, b.Value)
			require.Eventually(r.t, func() bool { d, open := r.Server.Open(user); return open && d.Field }, 30*time.Second, 2*time.Millisecond)
			r.Submit(user, reason)
			return true
		}
	}
	return false
}

func (r *rig) Break(fault peopletest.Fault) {
	r.Fail(map[peopletest.Fault]slacktest.Fault{
		peopletest.Slow:    {Status: http.StatusTooManyRequests, Code: "ratelimited", RetryAfter: 7},
		peopletest.Broken:  {Status: http.StatusBadGateway},
		peopletest.Cut:     {},
		peopletest.Lost:    {Done: true},
		peopletest.Locked:  {Status: http.StatusOK, Code: "invalid_auth " + slacktest.BotToken},
		peopletest.Blocked: {Status: http.StatusOK, Code: "user_disabled"},
	}[fault])
}

package telegram_test

import (
	"log/slog"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/telegram"
	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
)

const token = "777:AAsecretsecretsecretsecretsecretsec"

// rig is an in-memory Telegram with the users of package peopletest. It fails the test if the carrier
// makes a call that a correct client never makes.
type rig struct {
	t *testing.T
	*telegramtest.Server
}

func newRig(t *testing.T) peopletest.Rig {
	r := &rig{t, telegramtest.New(token)}
	r.Unlimited()
	for _, user := range []string{peopletest.Ann, peopletest.Bob, peopletest.Mallory} {
		r.Start(id(user))
	}
	t.Cleanup(func() {
		r.Close()
		require.Empty(t, r.Rejected())
	})
	return r
}

var features = peopletest.Features{Buttons: true, Replies: true, Edits: true, Reasons: true, Scopes: true, AgentOptions: true}

func TestTheSuite(t *testing.T) { peopletest.Run(t, features, newRig, token, "secretsecret") }

func id(user string) int64 {
	n, err := strconv.ParseInt(user, 10, 64)
	if err != nil {
		panic(err) // an error means that the test itself is broken
	}
	return n
}

func (r *rig) Open(log *slog.Logger) people.Carrier {
	c, err := telegram.New(r.URL(), token, log)
	require.NoError(r.t, err)
	return c
}

func (r *rig) Read(user string) []peopletest.Message {
	looks := map[int64]peopletest.Message{}
	for _, m := range r.Chat(id(user)) {
		looks[m.ID] = r.message(m)
	}
	var all []peopletest.Message
	for _, read := range r.Server.Read(id(user)) {
		if read.Toast != "" {
			all = append(all, peopletest.Message{Text: read.Toast})
		} else {
			all = append(all, looks[read.Message])
		}
	}
	return all
}

// message converts a message for the suite. It requires that the text of the agent is formatted as
// code, in which Telegram makes no links.
func (r *rig) message(m telegramtest.Message) peopletest.Message {
	for _, live := range []string{"://", "/pending https", "@everyone", "rm -rf"} {
		require.NotContains(r.t, m.Bare, live)
	}
	out := peopletest.Message{ID: strconv.FormatInt(m.ID, 10), Text: m.Text}
	for _, b := range m.Buttons {
		out.Choices = append(out.Choices, peopletest.Choice{Kind: peopletest.KindOf(b.Text), Label: b.Text, Token: b.Data})
	}
	return out
}

func (r *rig) Does(user string, act peopletest.Act) bool {
	chat := user
	if act.Of != "" {
		chat = act.Of
	}
	about, _ := strconv.ParseInt(act.Message, 10, 64) // 0 if the act is not about a message
	switch {
	case act.Press != "":
		r.Press(id(user), id(chat), about, act.Press, false)
	case act.Reason != "":
		return r.deny(user, about, act.Reason)
	default:
		r.Write(id(user), act.Say, about)
	}
	return true
}

// deny presses the button for a denial with a reason, and replies with the reason. It returns false if
// there is no such button.
func (r *rig) deny(user string, about int64, reason string) bool {
	for _, m := range r.Chat(id(user)) {
		for _, b := range m.Buttons {
			if m.ID != about || b.Text != "Deny, say why" {
				continue
			}
			before := len(r.Chat(id(user)))
			r.Press(id(user), id(user), about, b.Data, false)
			require.Eventually(r.t, func() bool { return len(r.Chat(id(user))) > before }, 30*time.Second, 2*time.Millisecond)
			r.Write(id(user), reason, r.Chat(id(user))[before].ID)
			return true
		}
	}
	return false
}

func (r *rig) Break(fault peopletest.Fault) {
	r.Fail(map[peopletest.Fault]telegramtest.Fault{
		peopletest.Slow:    {Code: http.StatusTooManyRequests, Words: "Too Many Requests: retry after 7", RetryAfter: 7},
		peopletest.Broken:  {Code: http.StatusBadGateway, Words: "Bad Gateway"},
		peopletest.Cut:     {},
		peopletest.Lost:    {Done: true},
		peopletest.Locked:  {Code: http.StatusUnauthorized, Words: "Unauthorized " + token},
		peopletest.Blocked: {Code: http.StatusForbidden, Words: "Forbidden: bot was blocked by the user"},
	}[fault])
}

func refOf(messageID int64) string { return strconv.FormatInt(messageID, 10) }

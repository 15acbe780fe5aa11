package discord_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/discord"
	"github.com/nodbus/nod/connectors/people/discord/discordtest"
	"github.com/nodbus/nod/connectors/people/peopletest"
)

// rig is an in-memory Discord with the users of package peopletest. It fails the test if the carrier
// makes a call that a correct client never makes.
type rig struct {
	t *testing.T
	*discordtest.Server
}

func newRig(t *testing.T) *rig {
	r := &rig{t, discordtest.New()}
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
	peopletest.Run(t, features, func(t *testing.T) peopletest.Rig { return newRig(t) }, discordtest.Token, "secretsecret")
}

func (r *rig) Open(log *slog.Logger) people.Carrier {
	c, err := discord.New(r.URL(), discordtest.Token, log)
	require.NoError(r.t, err)
	return c
}

// menu returns the message with further answers that a person opened under a message.
func (r *rig) menu(user, about string) (m discordtest.Message, open bool) {
	for _, m := range r.Chat(user) {
		if m.Ephemeral && m.About == about && len(m.Buttons) > 0 {
			return m, true
		}
	}
	return m, false
}

// Read lists the texts that a person saw. While a menu or a modal is open, the message under which it was
// opened has the text and the buttons of the menu or modal instead of its own.
func (r *rig) Read(user string) (all []peopletest.Message) {
	looks := map[string]peopletest.Message{}
	for _, m := range r.Chat(user) {
		if m.Ephemeral {
			continue
		}
		look := peopletest.Message{ID: m.ID, Text: unbarred(m.Text), Choices: choices(m.Buttons)}
		menu, open := r.menu(user, m.ID)
		if open {
			look.Text += "\n" + menu.Text
			look.Choices = choices(menu.Buttons)
		}
		if modal, open := r.Server.Open(user); open && (modal.About == m.ID || modal.About == menu.ID) {
			look.Text += "\n" + modal.Title + "\n" + modal.Text
			look.Choices = nil
		}
		looks[m.ID] = look
	}
	for _, read := range r.Server.Read(user) {
		require.Empty(r.t, read.Links)
		if look, there := looks[read.ID]; there {
			all = append(all, look)
		} else {
			all = append(all, peopletest.Message{Text: read.Text})
		}
	}
	return all
}

// unbarred returns a text without the bars at the beginnings of quoted lines.
func unbarred(text string) string {
	return strings.TrimPrefix(strings.ReplaceAll(text, "\n│ ", "\n"), "│ ")
}

func choices(buttons []discordtest.Button) (all []peopletest.Choice) {
	for _, b := range buttons {
		all = append(all, peopletest.Choice{Kind: peopletest.KindOf(b.Label), Label: b.Label, Token: b.ID})
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
		message := act.Message
		if menu, open := r.menu(user, message); open {
			message = menu.ID
		}
		r.Press(user, owner, message, act.Press)
		return true
	case act.Reason != "":
		return r.deny(user, act.Message, act.Reason)
	}
	return false
}

// deny presses the button for a denial with a reason, enters the reason in the modal and sends it.
func (r *rig) deny(user, id, reason string) bool {
	for _, m := range r.Chat(user) {
		for _, b := range m.Buttons {
			if m.ID != id || b.Label != "Deny, say why" {
				continue
			}
			r.Press(user, user, id, b.ID)
			require.Eventually(r.t, func() bool { _, open := r.Server.Open(user); return open }, 30*time.Second, 2*time.Millisecond)
			r.Submit(user, reason)
			return true
		}
	}
	return false
}

func (r *rig) Break(fault peopletest.Fault) {
	r.Fail(map[peopletest.Fault]discordtest.Fault{
		peopletest.Slow:    {Status: http.StatusTooManyRequests, RetryAfter: 7},
		peopletest.Broken:  {Status: http.StatusBadGateway},
		peopletest.Cut:     {},
		peopletest.Lost:    {Done: true},
		peopletest.Locked:  {Status: http.StatusUnauthorized, Message: "401: " + discordtest.Token},
		peopletest.Blocked: {Status: http.StatusForbidden, Code: 50007},
	}[fault])
}

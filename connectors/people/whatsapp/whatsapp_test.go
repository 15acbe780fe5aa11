package whatsapp_test

import (
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/whatsapp"
	"github.com/nodbus/nod/connectors/people/whatsapp/whatsapptest"
	"github.com/nodbus/nod/internal/testports"
	"github.com/nodbus/nod/schemas"
)

var secrets = []string{whatsapptest.Token, whatsapptest.AppSecret, whatsapptest.VerifyToken, "secretsecret"}

// rig is an in-memory WhatsApp with the users of package peopletest. It fails the test if the carrier
// makes a call that a correct client never makes.
type rig struct {
	t *testing.T
	*whatsapptest.Server
	listen string
}

func newRig(t *testing.T) *rig {
	r := &rig{t, whatsapptest.New(), testports.Address(t)}
	r.Unlimited()
	r.Hook("http://" + r.listen + "/nod/whatsapp")
	for _, user := range []string{peopletest.Ann, peopletest.Bob, peopletest.Mallory} {
		r.Start(user)
	}
	t.Cleanup(func() {
		r.Close()
		require.Empty(t, r.Rejected())
	})
	return r
}

var features = peopletest.Features{Buttons: true, Codes: true, Reasons: true}

func TestTheSuite(t *testing.T) {
	t.Parallel()
	peopletest.Run(t, features, func(t *testing.T) peopletest.Rig { return newRig(t) }, secrets...)
}

func (r *rig) options(log *slog.Logger) whatsapp.Options {
	return whatsapp.Options{
		BaseURL: r.URL(), PhoneNumberID: whatsapptest.Number, Token: whatsapptest.Token, AppSecret: whatsapptest.AppSecret,
		VerifyToken: whatsapptest.VerifyToken, Listen: r.listen, Log: log,
	}
}

func (r *rig) Open(log *slog.Logger) people.Carrier {
	c, err := whatsapp.New(r.options(log))
	require.NoError(r.t, err)
	return c
}

// Read lists the messages as a person sees them: without the backticks around code. A message
// with buttons also contains the text of the request that it quotes.
func (r *rig) Read(user string) (all []peopletest.Message) {
	texts := map[string]string{}
	for _, m := range r.Chat(user) {
		for _, live := range []string{"://", "@everyone", "rm -rf", "*bold*"} {
			require.NotContains(r.t, m.Bare(), live)
		}
		text := strings.ReplaceAll(m.Text, "```", "")
		texts[m.ID] = text
		if m.Type == "interactive" && m.Quotes != "" {
			text = texts[m.Quotes] + "\n" + text
		}
		out := peopletest.Message{ID: m.ID, Text: text}
		for _, b := range m.Buttons {
			out.Choices = append(out.Choices, peopletest.Choice{Kind: kindOf(b.Title), Label: b.Title, Token: b.ID})
		}
		all = append(all, out)
	}
	return all
}

func kindOf(title string) schemas.OptionKind {
	switch {
	case strings.HasPrefix(title, "Allow once"):
		return schemas.AllowOnce
	case title == "Deny":
		return schemas.RejectOnce
	}
	return ""
}

var answerCode = regexp.MustCompile(`no ([0-9A-Z]{4})`)

func (r *rig) Does(user string, act peopletest.Act) bool {
	switch {
	case act.Press != "":
		r.Tap(user, act.Message, act.Press)
	case act.Reason != "":
		for _, m := range r.Chat(user) {
			if found := answerCode.FindStringSubmatch(m.Text); m.ID == act.Message && found != nil {
				r.Write(user, "no "+found[1]+" "+act.Reason, "")
				return true
			}
		}
		return false
	default:
		r.Write(user, act.Say, act.Message)
	}
	return true
}

func (r *rig) Break(fault peopletest.Fault) {
	r.Fail(map[peopletest.Fault]whatsapptest.Fault{
		peopletest.Slow:    {Status: http.StatusTooManyRequests, Code: 130429, Words: "Rate limit hit", RetryAfter: 7},
		peopletest.Broken:  {Status: http.StatusBadGateway, Code: 131000, Words: "Something went wrong"},
		peopletest.Cut:     {},
		peopletest.Lost:    {Done: true},
		peopletest.Locked:  {Status: http.StatusUnauthorized, Code: 190, Words: "Invalid OAuth access token " + whatsapptest.Token},
		peopletest.Blocked: {Status: http.StatusBadRequest, Code: 131026, Words: "Message undeliverable"},
	}[fault])
}

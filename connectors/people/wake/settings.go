package wake

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const Name = "wake"

//go:embed settings.schema.json
var settingsSchema []byte

// Channel describes this channel. Package embed registers it.
var Channel = people.Channel{
	Settings: schemas.ChannelSettings{Name: Name, Schema: settingsSchema, Check: checkSettings, Outgoing: true},
	Open:     people.OpenSettings(Name, New),
	Account:  "webhook, an ntfy topic, a mail address or a push service",
	Guide:    "docs/wake.md",
}

// Settings is the section connectors.wake of settings.json.
type Settings struct {
	WebURL  string   `json:"web_url"` // the address of the web inbox, for the links
	Targets []Target `json:"targets"`
}

// Kind is the protocol of a target.
type Kind string

// The kinds of target.
const (
	Webhook Kind = "webhook" // the protocol of Standard Webhooks
	Ntfy    Kind = "ntfy"
	Form    Kind = "form" // a form with the fields in the settings
	JSON    Kind = "json" // a JSON object with the fields in the settings
	Mail    Kind = "mail" // a mail that nod sends by SMTP
)

// Target is a recipient of notifications. An approver has a target if the approver's user id on the
// connector wake is the target's name.
type Target struct {
	Name    string `json:"name"`
	Kind    Kind   `json:"kind"`
	URL     string `json:"url,omitempty"`
	URLEnv  string `json:"url_env,omitempty"`
	URLFile string `json:"url_file,omitempty"`
	// SecretEnv and SecretFile name the key of a webhook, the access token of ntfy, or the value of
	// {secret} in fields and headers.
	SecretEnv    string     `json:"secret_env,omitempty"`
	SecretFile   string     `json:"secret_file,omitempty"`
	AfterSeconds int        `json:"after_seconds,omitempty"`
	Payload      bool       `json:"payload,omitempty"`
	Topic        string     `json:"topic,omitempty"`
	From         string     `json:"from,omitempty"` // the sender of a mail
	To           string     `json:"to,omitempty"`   // its recipient
	User         string     `json:"user,omitempty"` // the user name for the login at the mail server; the secret is the password
	Fields       []Field    `json:"fields,omitempty"`
	Headers      []Field    `json:"headers,omitempty"`
	Priorities   Priorities `json:"priorities,omitzero"`
}

// Field is a field or a header of the kinds form and JSON.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Priorities are the values of the placeholder {priority}: one for each risk of a waiting
// request, and one for an outcome.
type Priorities struct {
	Low    int `json:"low,omitempty"`
	Medium int `json:"medium,omitempty"`
	High   int `json:"high,omitempty"`
	Ended  int `json:"ended,omitempty"` // for the message about the outcome
}

// checkSettings checks the rules that settings.schema.json cannot express.
func checkSettings(data json.RawMessage) error {
	s, err := people.ParseSettings[Settings](Name, data)
	if err != nil {
		return err
	}
	if u, err := parseURL(s.WebURL); err != nil || u.RawQuery != "" {
		return schemas.Errorf(schemas.CodeValidation, "connectors.wake.web_url: it must be the plain https:// address of the web inbox; http:// is for this machine alone")
	}
	names := map[string]bool{}
	for i := range s.Targets {
		t := &s.Targets[i]
		fault := t.fault()
		if names[t.Name] {
			fault = "another target has the same name"
		}
		if fault != "" {
			return schemas.Errorf(schemas.CodeValidation, "connectors.wake.targets[%d] (%s): %s", i, t.Name, fault)
		}
		names[t.Name] = true
	}
	return nil
}

// fault returns the first fault of a target's settings, or "".
func (t *Target) fault() string {
	template := t.Kind == Form || t.Kind == JSON
	hasSecret := t.SecretEnv+t.SecretFile != ""
	switch {
	case count(t.URL, t.URLEnv, t.URLFile) != 1:
		return "needs one of url, url_env and url_file"
	case count(t.SecretEnv, t.SecretFile) > 1:
		return "secret_env and secret_file exclude each other"
	case t.Kind == Webhook && !hasSecret:
		return "a webhook needs secret_env or secret_file, to name the key of its signature"
	case (t.Kind == Ntfy) != (t.Topic != ""):
		return "topic belongs to the kind ntfy, and ntfy needs it"
	case t.Kind == Ntfy && t.Payload && !hasSecret:
		return "payload needs secret_env or secret_file, because anyone can read an ntfy topic without access control"
	case t.Kind == Mail && (t.From == "" || t.To == ""), t.Kind != Mail && t.From+t.To+t.User != "":
		return "from, to and user belong to the kind mail, which needs from and to"
	case t.Kind == Mail && (t.User != "") != hasSecret:
		return "user needs secret_env or secret_file, to name the password, and the password needs user"
	case template != (len(t.Fields) > 0):
		return "fields belong to the kinds form and json, which need them"
	case !template && (len(t.Headers) > 0 || t.Priorities != Priorities{}):
		return "headers and priorities belong to the kinds form and json"
	}
	for _, f := range slices.Concat(t.Fields, t.Headers) {
		if strings.Contains(f.Value, "{secret}") && !hasSecret {
			return "{secret} needs secret_env or secret_file"
		}
	}
	if t.URL != "" {
		if _, err := t.Kind.parseURL(t.URL); err != nil {
			return "url: " + err.Error()
		}
	}
	for _, box := range []string{t.From, t.To} {
		if _, err := parseMailbox(box); t.Kind == Mail && err != nil {
			return "from and to: " + err.Error()
		}
	}
	return ""
}

// count returns the number of texts that are not empty.
func count(texts ...string) int {
	return len(slices.DeleteFunc(texts, func(s string) bool { return s == "" }))
}

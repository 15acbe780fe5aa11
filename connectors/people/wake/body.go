package wake

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// webhookBody has the form that Standard Webhooks recommends.
type webhookBody struct {
	Type      string      `json:"type"`
	Timestamp time.Time   `json:"timestamp"`
	Data      webhookData `json:"data"`
}

type webhookData struct {
	Target   string          `json:"target"`
	Session  string          `json:"session_id"`
	ID       string          `json:"pending_id"`
	Project  string          `json:"project,omitempty"`
	Risk     schemas.Risk    `json:"risk"`
	Link     string          `json:"link"`
	Deadline time.Time       `json:"deadline"`
	Outcome  schemas.Outcome `json:"outcome,omitempty"`
	Title    string          `json:"title"`
	Text     string          `json:"text"`
}

// maxWebhookText is the largest text of a webhook in bytes. Standard Webhooks recommends bodies of less
// than 20 KB.
const maxWebhookText = 15 << 10

// webhook returns the body of a webhook, and adds the headers with its signature. The signature
// covers the time of this attempt, so a receiver can refuse a call that somebody copied and sends
// again later.
func (t *target) webhook(m *message, header http.Header) ([]byte, error) {
	body, err := json.Marshal(webhookBody{Type: m.event, Timestamp: m.at.UTC(), Data: webhookData{
		Target: t.Name, Session: m.Session, ID: m.ID, Project: m.Project, Risk: m.Risk, Link: m.Link, Deadline: m.Deadline.UTC(),
		Outcome: m.Outcome, Title: m.Title, Text: m.text(t, maxWebhookText),
	}})
	if err != nil {
		return nil, fmt.Errorf("encode the message: %w", err)
	}
	at := strconv.FormatInt(m.at.Unix(), 10)
	mac := hmac.New(sha256.New, t.key)
	mac.Write([]byte(m.id + "." + at + "."))
	mac.Write(body)
	header.Set("Content-Type", "application/json")
	header.Set("webhook-id", m.id)
	header.Set("webhook-timestamp", at)
	header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return body, nil
}

// maxNtfy is the largest message in bytes that ntfy shows as text. ntfy turns a longer message
// into an attachment.
const maxNtfy = 4096

// ntfy returns the JSON with which ntfy publishes a message.
func (t *target) ntfy(m *message, header http.Header) ([]byte, error) {
	header.Set("Content-Type", "application/json")
	if t.secret != "" {
		header.Set("Authorization", "Bearer "+t.secret)
	}
	return json.Marshal(struct {
		Topic    string `json:"topic"`
		Title    string `json:"title"`
		Message  string `json:"message"`
		Priority int    `json:"priority"`
		Click    string `json:"click"`
	}{t.Topic, m.Title, m.text(t, maxNtfy), Priorities{Low: 3, Medium: 4, High: 5, Ended: 1}.of(m), m.Link})
}

// of returns the priority for the notification m. An unknown risk counts as high.
func (p Priorities) of(m *message) int {
	switch {
	case m.event == ended:
		return p.Ended
	case m.Risk == schemas.RiskLow:
		return p.Low
	case m.Risk == schemas.RiskMedium:
		return p.Medium
	}
	return p.High
}

// priority is a placeholder. If a field of a JSON body consists of this placeholder alone, the field's
// value is a number and not a string.
const priority = "{priority}"

// maxTemplateText is the largest text in a template in bytes. Pushover shows 1,024 characters.
const maxTemplateText = 1024

// template returns a body with the fields in the target's settings. It replaces all placeholders
// of a field in one pass, so a project's name that looks like a placeholder is not replaced. In
// headers it replaces only {secret}.
func (t *target) template(m *message, header http.Header) ([]byte, error) {
	fill := strings.NewReplacer(
		"{title}", m.Title, "{text}", m.text(t, maxTemplateText), "{link}", m.Link, "{id}", m.ID, "{project}", m.Project,
		"{risk}", string(m.Risk), priority, strconv.Itoa(t.Priorities.of(m)), "{event}", m.event, "{secret}", t.secret)
	for _, h := range t.Headers {
		header.Set(h.Name, strings.ReplaceAll(h.Value, "{secret}", t.secret))
	}
	if t.Kind == JSON {
		fields := map[string]any{}
		for _, f := range t.Fields {
			fields[f.Name] = fill.Replace(f.Value)
			if f.Value == priority {
				fields[f.Name] = t.Priorities.of(m)
			}
		}
		header.Set("Content-Type", "application/json")
		return json.Marshal(fields)
	}
	form := url.Values{}
	for _, f := range t.Fields {
		form.Add(f.Name, fill.Replace(f.Value))
	}
	header.Set("Content-Type", "application/x-www-form-urlencoded")
	return []byte(form.Encode()), nil
}

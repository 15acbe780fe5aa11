package voice

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"log/slog"

	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// Name is the name of the connector.
const Name = schemas.ClientVoice

// DefaultListen is the address on which voice clients find the connector.
const DefaultListen = "127.0.0.1:4284"

//go:embed settings.schema.json
var settingsSchema []byte

// Channel describes the voice connector. Package embed registers it.
var Channel = people.Channel{
	Settings: schemas.ChannelSettings{Name: Name, Schema: settingsSchema, Check: checkSettings},
	Open:     people.OpenSettings(Name, open),
	Account:  "voice client",
	Guide:    "docs/voice.md",
	SendCode: "nod voice --pair CODE",
	SendFrom: "Run this on the machine of the voice client",
}

// Settings is the section connectors.voice of settings.json.
type Settings struct {
	Listen      string `json:"listen,omitempty"`     // HOST:PORT; empty means DefaultListen
	PublicURL   string `json:"public_url,omitempty"` // the address that clients use, if it is not Listen
	CertFile    string `json:"cert_file,omitempty"`
	KeyFile     string `json:"key_file,omitempty"`
	BehindProxy bool   `json:"behind_proxy,omitempty"` // a proxy in front of it speaks TLS
	// PermissionTimeoutSeconds is a setting for engines; see schemas.Settings.VoiceTimeout.
	PermissionTimeoutSeconds int `json:"permission_timeout_seconds,omitempty"`
	// WordsPerMinute is the rate at which clients speak. From this rate nod estimates when a client has
	// finished, unless the client reports the end. 0 means DefaultRate.
	WordsPerMinute int `json:"words_per_minute,omitempty"`
	// EchoMarginMS is the time in milliseconds after a client's own speech in which words do not count.
	// 0 means DefaultMargin.
	EchoMarginMS int `json:"echo_margin_ms,omitempty"`
}

func (s *Settings) listen() httpserve.Listen {
	return httpserve.Listen{
		Addr: cmp.Or(s.Listen, DefaultListen), PublicURL: s.PublicURL,
		TLSCert: s.CertFile, TLSKey: s.KeyFile, BehindProxy: s.BehindProxy,
	}
}

// checkSettings checks the rules that settings.schema.json cannot express.
func checkSettings(data json.RawMessage) error {
	s, err := people.ParseSettings[Settings](Name, data)
	if err != nil {
		return err
	}
	return people.KeyPair{Setting: "connectors.voice", CertFile: s.CertFile, KeyFile: s.KeyFile}.Check()
}

func open(s Settings, log *slog.Logger) (*Carrier, error) { return New(s, log), nil }

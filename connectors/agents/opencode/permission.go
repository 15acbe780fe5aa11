package opencode

import (
	"encoding/json"
	"errors"
	"fmt"
)

// permission is a permission for which OpenCode asks its user.
type permission struct {
	ID        string
	SessionID string
	Name      string   // the kind of permission: bash, edit, external_directory, …
	Patterns  []string // patterns of the calls that the answer "once" allows
	Always    []string // patterns of the calls that the answer "always" allows until OpenCode is closed
	Metadata  json.RawMessage
	MessageID string // with CallID, identifies the tool call that needs the permission; may be empty
	CallID    string
	// Old is true if the permission has the format of OpenCode before 1.1. The reply must then have
	// that format too.
	Old bool
}

// wirePermission is a permission as OpenCode sends it. OpenCode since 1.1 uses the second group of
// fields, and older versions use the third group.
type wirePermission struct {
	ID        string          `json:"id"`
	SessionID string          `json:"sessionID"`
	Metadata  json.RawMessage `json:"metadata"`

	Permission string   `json:"permission"`
	Patterns   []string `json:"patterns"`
	Always     []string `json:"always"`
	Tool       struct {
		MessageID string `json:"messageID"`
		CallID    string `json:"callID"`
	} `json:"tool"`

	Type      string          `json:"type"`
	Pattern   json.RawMessage `json:"pattern"` // a string or an array of strings
	MessageID string          `json:"messageID"`
	CallID    string          `json:"callID"`
}

func parsePermission(e event) (permission, error) {
	var s wirePermission
	if err := json.Unmarshal(e.Properties, &s); err != nil {
		return permission{}, fmt.Errorf("read a permission: %w", err)
	}
	return s.permission(e.Type == "permission.updated")
}

func (s wirePermission) permission(old bool) (permission, error) {
	p := permission{
		ID: s.ID, SessionID: s.SessionID, Name: s.Permission, Patterns: s.Patterns, Always: s.Always,
		Metadata: s.Metadata, MessageID: s.Tool.MessageID, CallID: s.Tool.CallID, Old: old,
	}
	if old {
		p.Name, p.MessageID, p.CallID = s.Type, s.MessageID, s.CallID
		p.Patterns = texts(s.Pattern)
		p.Always = p.Patterns
	}
	if p.ID == "" || p.SessionID == "" || p.Name == "" {
		return p, errors.New("the permission has no id, session or name")
	}
	return p, nil
}

// texts returns the string, or the strings of the array, in raw. It returns nil for any other JSON value.
func texts(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	var several []string
	if json.Unmarshal(raw, &several) != nil {
		return nil
	}
	return several
}

// reply is an answer in OpenCode's format.
type reply string

// The answers that OpenCode knows.
const (
	once   reply = "once"
	always reply = "always"
	reject reply = "reject"
)

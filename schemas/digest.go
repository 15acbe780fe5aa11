package schemas

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// asked is what a digest covers: what is asked and by which id, not when, from
// where or under which task. An absent field and an empty one are the same: a
// missing or empty list, text or null is left out, missing action_details are
// {}. Options are covered as they were named; none are not the default ones.
//
// Its fields stand in the order of RFC 8785, so that what Encode makes of it
// often is the canonical form already.
type asked struct {
	ActionDetails json.RawMessage `json:"action_details"`
	ActionType    ActionType      `json:"action_type,omitempty"`
	Kind          Kind            `json:"kind,omitempty"`
	Options       []askedOption   `json:"options,omitempty"`
	PendingID     string          `json:"pending_id,omitempty"`
	Permissions   []string        `json:"permissions,omitempty"`
	Reason        string          `json:"reason,omitempty"`
	SessionID     string          `json:"session_id,omitempty"`
	Title         string          `json:"title,omitempty"`
	ToolName      string          `json:"tool_name,omitempty"`
}

// askedOption is an Option in that order.
type askedOption struct {
	Kind     OptionKind `json:"kind"`
	Name     string     `json:"name"`
	OptionID string     `json:"option_id"`
	Text     bool       `json:"text,omitempty"`
}

// AnyDigest is the digest of a request that was withdrawn before it was asked:
// what still arrives under its id is that request, whatever it asks.
var AnyDigest = strings.Repeat("0", 2*sha256.Size)

// Digest is the lower-case hexadecimal SHA-256 of the RFC 8785 form of what r
// asks. Two requests that Decode accepted have the same digest only where they
// ask the same; key order, white space and the spelling of numbers and escapes
// do not matter. It fails on action_details that are no JSON of valid syntax.
func Digest(r *Request) (string, error) {
	options := make([]askedOption, len(r.Options))
	for i, o := range r.Options {
		options[i] = askedOption{o.Kind, o.Name, o.OptionID, o.Text}
	}
	sum, err := sumOf(asked{
		SessionID: r.SessionID, PendingID: r.PendingID, Kind: r.Kind, Title: r.Title, ToolName: r.ToolName,
		ActionType: r.ActionType, ActionDetails: detailsOf(r), Permissions: r.Permissions, Options: options, Reason: r.Reason,
	})
	if err != nil {
		return "", fmt.Errorf("digest of request %s: %w", r.Key(), err)
	}
	return sum, nil
}

// same is what two identical calls have in common, in the order of RFC 8785.
type same struct {
	ActionDetails json.RawMessage `json:"action_details"`
	ActionType    ActionType      `json:"action_type,omitempty"`
	Host          string          `json:"host,omitempty"`
	Kind          Kind            `json:"kind,omitempty"`
	Permissions   []string        `json:"permissions,omitempty"`
	Project       string          `json:"project,omitempty"`
	ToolName      string          `json:"tool_name,omitempty"`
}

// Sameness is the digest of what r would do and where, under whichever id and for
// whatever reason: two tool calls of one session with the same one are identical.
// All that rules and approvers are chosen by is in it.
func Sameness(r *Request) (string, error) {
	sum, err := sumOf(same{detailsOf(r), r.ActionType, r.Host, r.Kind, r.Permissions, r.Project, r.ToolName})
	if err != nil {
		return "", fmt.Errorf("sameness of request %s: %w", r.Key(), err)
	}
	return sum, nil
}

// detailsOf are a request's action_details; none are {}.
func detailsOf(r *Request) json.RawMessage {
	if len(r.ActionDetails) == 0 || bytes.Equal(r.ActionDetails, []byte("null")) {
		return json.RawMessage("{}")
	}
	return inOrder(r.ActionDetails)
}

// sumOf is the digest of a struct whose fields stand in the order of RFC 8785.
func sumOf(a any) (string, error) {
	form, err := Encode(a)
	if err != nil {
		return "", err
	}
	if form, err = canon(form); err != nil {
		return "", err
	}
	sum := sha256.Sum256(form)
	return hex.EncodeToString(sum[:]), nil
}

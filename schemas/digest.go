package schemas

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// digestInput has the fields that a digest covers: the id and the content of a request, but not its
// time, host, project or task. Empty and absent fields count as equal: an empty list, an empty text
// and null are left out, and missing action_details become {}. Options are an exception: a request
// without options has another digest than a request with the default options.
//
// The fields are in the order of RFC 8785, so that the output of Encode is often canonical already.
type digestInput struct {
	ActionDetails json.RawMessage `json:"action_details"`
	ActionType    ActionType      `json:"action_type,omitempty"`
	Kind          Kind            `json:"kind,omitempty"`
	Options       []digestOption  `json:"options,omitempty"`
	PendingID     string          `json:"pending_id,omitempty"`
	Permissions   []string        `json:"permissions,omitempty"`
	Reason        string          `json:"reason,omitempty"`
	SessionID     string          `json:"session_id,omitempty"`
	Title         string          `json:"title,omitempty"`
	ToolName      string          `json:"tool_name,omitempty"`
}

// digestOption is an Option with its fields in the order of RFC 8785.
type digestOption struct {
	Kind     OptionKind `json:"kind"`
	Name     string     `json:"name"`
	OptionID string     `json:"option_id"`
	Text     bool       `json:"text,omitempty"`
}

// AnyDigest is the digest in the record of a request that was withdrawn before it arrived. Any
// request that later arrives with the same id counts as that request.
var AnyDigest = strings.Repeat("0", 2*sha256.Size)

// Digest returns the SHA-256 of the RFC 8785 form of the content of r, in lower-case hexadecimal
// digits. Two requests that Decode accepts have the same digest only if they have the same content.
// The order of members, white space, and the spelling of numbers and escapes do not matter. An error
// means that action_details is not valid JSON.
func Digest(r *Request) (string, error) {
	options := make([]digestOption, len(r.Options))
	for i, o := range r.Options {
		options[i] = digestOption{o.Kind, o.Name, o.OptionID, o.Text}
	}
	sum, err := sumOf(digestInput{
		SessionID: r.SessionID, PendingID: r.PendingID, Kind: r.Kind, Title: r.Title, ToolName: r.ToolName,
		ActionType: r.ActionType, ActionDetails: detailsOf(r), Permissions: r.Permissions, Options: options, Reason: r.Reason,
	})
	if err != nil {
		return "", fmt.Errorf("digest of request %s: %w", r.Key(), err)
	}
	return sum, nil
}

// callIdentity has the fields that must be equal in identical calls, in the order of RFC 8785.
type callIdentity struct {
	ActionDetails json.RawMessage `json:"action_details"`
	ActionType    ActionType      `json:"action_type,omitempty"`
	Host          string          `json:"host,omitempty"`
	Kind          Kind            `json:"kind,omitempty"`
	Permissions   []string        `json:"permissions,omitempty"`
	Project       string          `json:"project,omitempty"`
	ToolName      string          `json:"tool_name,omitempty"`
}

// CallDigest returns a digest of a call's content with its host and project, but without its id and
// reason. Two tool calls of one session are identical if they have the same CallDigest. The digest covers
// every field by which nod chooses rules and approvers. An error means that action_details is not valid
// JSON.
func CallDigest(r *Request) (string, error) {
	sum, err := sumOf(callIdentity{detailsOf(r), r.ActionType, r.Host, r.Kind, r.Permissions, r.Project, r.ToolName})
	if err != nil {
		return "", fmt.Errorf("sameness of request %s: %w", r.Key(), err)
	}
	return sum, nil
}

// detailsOf returns a request's action_details, or {} if it has none.
func detailsOf(r *Request) json.RawMessage {
	if len(r.ActionDetails) == 0 || bytes.Equal(r.ActionDetails, []byte("null")) {
		return json.RawMessage("{}")
	}
	return withSortedMembers(r.ActionDetails)
}

// sumOf returns the digest of a struct whose fields are in the order of RFC 8785.
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

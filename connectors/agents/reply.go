package agents

import (
	"fmt"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// AgentReply is what an agent hears of how its request ended.
type AgentReply struct {
	Allowed bool   // only where the decision allowed this request; everything else is a no
	IsError bool   // the asking failed, rather than the answer being no
	Text    string // never empty
}

// DescribeDecision puts d into words for the agent that asked r. A tool call that timed
// out is denied; a permission that timed out is an error.
func DescribeDecision(r *schemas.Request, d *schemas.Decision) AgentReply {
	heard := AgentReply{Allowed: Allows(*r, *d)}
	permission := r.Kind == schemas.KindPermission
	switch {
	case heard.Allowed && permission && d.By.Kind == schemas.ByPolicy:
		heard.Text = AlreadyGranted(r.Permissions)
	case heard.Allowed && permission:
		heard.Text = "Permission granted for " + Access(r.Permissions) + "."
	case heard.Allowed:
		heard.Text = said("Allowed", d)
	case d.Outcome == schemas.TimedOut: // the engine says how long it waited
		heard.IsError, heard.Text = permission, orElse(d.Message, "Permission request timed out.")
	case d.Outcome == schemas.Withdrawn:
		heard.IsError, heard.Text = permission, withMessage("Permission request was withdrawn", d.Message)
	case permission && d.Outcome == schemas.Cancelled && d.By.Name == schemas.NobodyReached && d.By.Kind == schemas.ByPolicy:
		heard.IsError, heard.Text = true, d.Message
	case permission && (d.Outcome == schemas.Denied || d.Outcome == schemas.Cancelled):
		heard.Text = "Permission denied for " + Access(r.Permissions) + "."
		if d.Message != "" || d.By.Kind == schemas.ByPolicy {
			heard.Text += " " + said("Denied", d)
		}
	case d.Outcome == schemas.Denied:
		heard.Text = said("Denied", d)
	case d.Outcome == schemas.Cancelled:
		heard.Text = said("Dismissed without an answer", d)
	default:
		heard.IsError = true
		heard.Text = fmt.Sprintf("nod sent no usable decision (outcome %q); treated as denied.", d.Outcome)
	}
	return heard
}

// DescribeRefusingEdits is Hear for an agent that runs what it asked about and nothing else:
// an allow with other input is a no, which says that input.
func DescribeRefusingEdits(r *schemas.Request, d *schemas.Decision) AgentReply {
	heard := DescribeDecision(r, d)
	if heard.Allowed && d.UpdatedInput != nil {
		return AgentReply{Text: heard.Text + " But with this input alone, so what was asked is denied: " + string(d.UpdatedInput)}
	}
	return heard
}

// DescribeError puts into words, for the agent, why there is no decision. It never
// allows.
func DescribeError(err *schemas.Error) AgentReply {
	text := err.Message
	if err.Code == schemas.CodeUndeliverable {
		text = "Nobody could be asked: " + text
	}
	return AgentReply{IsError: true, Text: orElse(text, "Permission request failed")}
}

// AlreadyGranted is what an agent hears that asks for what it holds.
func AlreadyGranted(tags []string) string {
	return "Permission already granted for " + Access(tags) + "."
}

// Access puts permission tags into words: "network access", "write access to
// /p and read access to /q". The paths are as they were asked for.
func Access(tags []string) string {
	var all []string
	for _, tag := range tags {
		switch kind, path, _ := strings.Cut(tag, ":"); kind {
		case "@network":
			all = append(all, "network access")
		case "@read":
			all = append(all, "read access to "+path)
		case "@write":
			all = append(all, "write access to "+path)
		default:
			all = append(all, tag)
		}
	}
	if n := len(all); n > 1 {
		return strings.Join(all[:n-1], ", ") + " and " + all[n-1]
	}
	return strings.Join(all, "")
}

// said is the outcome with who said so, and their message. A rule's message
// says so itself.
func said(outcome string, d *schemas.Decision) string {
	if d.By.Kind == schemas.ByPolicy && d.Message != "" {
		return d.Message + "."
	}
	return withMessage(outcome+" by "+who(d.By), d.Message)
}

func who(by schemas.By) string {
	switch {
	case by.Kind == schemas.ByPolicy && (by.Name == "" || by.Name == "default"):
		return "the built-in rules"
	case by.Kind == schemas.ByPolicy:
		return "the rule " + by.Name
	case by.Kind == schemas.ByHuman && by.Name == "":
		return "a person"
	case by.Kind == schemas.ByHuman:
		return by.Name
	}
	return "nod"
}

func withMessage(what, message string) string {
	if message = strings.TrimSpace(message); message == "" {
		return what + "."
	}
	return what + ": " + message
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

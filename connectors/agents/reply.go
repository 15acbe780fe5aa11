package agents

import (
	"fmt"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// AgentReply is a text that tells an agent the outcome of its request.
type AgentReply struct {
	Allowed bool   // the decision is about this request and allows it
	IsError bool   // the request failed; a denial is no failure
	Text    string // never empty
}

// DescribeDecision returns a text about the decision d for the agent that sent the request r. A tool
// call that timed out or was withdrawn counts as denied, which is no error. If a request for
// permissions timed out or was withdrawn, the reply is an error.
func DescribeDecision(r *schemas.Request, d *schemas.Decision) AgentReply {
	reply := AgentReply{Allowed: Allows(*r, *d)}
	permission := r.Kind == schemas.KindPermission
	switch {
	case reply.Allowed && permission && d.By.Kind == schemas.ByPolicy:
		reply.Text = AlreadyGranted(r.Permissions)
	case reply.Allowed && permission:
		reply.Text = "Permission granted for " + Access(r.Permissions) + "."
	case reply.Allowed:
		reply.Text = withDecider("Allowed", d)
	case d.Outcome == schemas.TimedOut: // the message in d says how long r waited
		reply.IsError, reply.Text = permission, orElse(d.Message, "Permission request timed out.")
	case d.Outcome == schemas.Withdrawn:
		reply.IsError, reply.Text = permission, withMessage("Permission request was withdrawn", d.Message)
	case permission && d.Outcome == schemas.Cancelled && d.By.Name == schemas.NobodyReached && d.By.Kind == schemas.ByPolicy:
		reply.IsError, reply.Text = true, d.Message
	case permission && (d.Outcome == schemas.Denied || d.Outcome == schemas.Cancelled):
		reply.Text = "Permission denied for " + Access(r.Permissions) + "."
		if d.Message != "" || d.By.Kind == schemas.ByPolicy {
			reply.Text += " " + withDecider("Denied", d)
		}
	case d.Outcome == schemas.Denied:
		reply.Text = withDecider("Denied", d)
	case d.Outcome == schemas.Cancelled:
		reply.Text = withDecider("Dismissed without an answer", d)
	default:
		reply.IsError = true
		reply.Text = fmt.Sprintf("nod sent no usable decision (outcome %q); treated as denied.", d.Outcome)
	}
	return reply
}

// DescribeRefusingEdits is DescribeDecision for an agent that cannot run an edited input. If d allows
// an edited input, the reply is a denial, whose text contains that input.
func DescribeRefusingEdits(r *schemas.Request, d *schemas.Decision) AgentReply {
	reply := DescribeDecision(r, d)
	if reply.Allowed && d.UpdatedInput != nil {
		return AgentReply{Text: reply.Text + " But only with edited input, so this call is denied. Ask again with: " + string(d.UpdatedInput)}
	}
	return reply
}

// DescribeError returns a text about a refusal by nod, for the agent. The reply is never an allow.
func DescribeError(err *schemas.Error) AgentReply {
	text := err.Message
	if err.Code == schemas.CodeUndeliverable {
		text = "No approver could be asked: " + text
	}
	return AgentReply{IsError: true, Text: orElse(text, "Permission request failed")}
}

// AlreadyGranted returns the text for an agent that requests permissions which it has already.
func AlreadyGranted(tags []string) string {
	return "Permission already granted for " + Access(tags) + "."
}

// Access describes permission tags. For @write:/p and @network it returns "write access to /p and
// network access". The paths stay as they are in the tags.
func Access(tags []string) string {
	var all []string
	for _, tag := range tags {
		switch kind, path, _ := strings.Cut(tag, ":"); kind {
		case "@network":
			if path != "" {
				all = append(all, "network access to "+path)
				continue
			}
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

// withDecider returns a text with the outcome, the name of the rule or person that decided, and the
// decision's message. If a rule has a message of its own, the text is only that message, which names
// the rule.
func withDecider(outcome string, d *schemas.Decision) string {
	if d.By.Kind == schemas.ByPolicy && d.Message != "" {
		return d.Message + "."
	}
	return withMessage(outcome+" by "+deciderName(d.By), d.Message)
}

func deciderName(by schemas.By) string {
	switch {
	case by.Kind == schemas.ByPolicy:
		return by.DescribeRule()
	case by.Kind == schemas.ByHuman && by.Name == "":
		return "a person"
	case by.Kind == schemas.ByHuman:
		return by.Name
	}
	return "nod"
}

func withMessage(outcome, message string) string {
	if message = strings.TrimSpace(message); message == "" {
		return outcome + "."
	}
	return outcome + ": " + message
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

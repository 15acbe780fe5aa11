package people

import (
	"fmt"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// Heard is what an agent hears of how its request ended.
type Heard struct {
	Allowed bool   // only where the decision allowed; everything else is a no
	IsError bool   // the asking failed, rather than the answer being no
	Text    string // never empty
}

// Hear puts d into words for the agent that asked r, whose request could be
// waited for as long as timeout. A tool call that timed out is denied; a
// permission that timed out is an error.
func Hear(d *schemas.Decision, r *schemas.Request, timeout time.Duration) Heard {
	if r.Kind == schemas.KindPermission {
		return hearPermission(d, r, timeout)
	}
	heard := Heard{Allowed: d.Outcome == schemas.Allowed}
	switch d.Outcome {
	case schemas.Allowed:
		heard.Text = said("Allowed", d)
	case schemas.Denied:
		heard.Text = said("Denied", d)
	case schemas.Cancelled:
		heard.Text = said("Dismissed without an answer", d)
	case schemas.TimedOut:
		heard.Text = "Permission request timed out after " + schemas.Words(timeout) + "."
	case schemas.Withdrawn:
		heard.Text = "Permission request was withdrawn."
	default:
		heard.Text = "Not allowed: the request ended in a way that this version of nod does not know."
	}
	return heard
}

func hearPermission(d *schemas.Decision, r *schemas.Request, timeout time.Duration) Heard {
	what := Access(r.Permissions)
	switch d.Outcome {
	case schemas.Allowed:
		return Heard{Allowed: true, Text: "Permission granted for " + what + "."}
	case schemas.TimedOut:
		return Heard{IsError: true, Text: "Permission request timed out after " + schemas.Minutes(timeout)}
	case schemas.Withdrawn:
		return Heard{IsError: true, Text: "Permission request was withdrawn"}
	}
	text := "Permission denied for " + what + "."
	if d.Message != "" || d.By.Kind == schemas.ByPolicy {
		text += " " + said("Denied", d)
	}
	return Heard{Text: text}
}

// HearError puts into words, for the agent, why there is no decision. It never
// allows.
func HearError(err *schemas.Error) Heard {
	text := err.Message
	if err.Code == schemas.CodeUndeliverable {
		text = "Nobody could be asked: " + text
	}
	return Heard{IsError: true, Text: orElse(text, "Permission request failed")}
}

// said is the outcome with who said so, and their message.
func said(outcome string, d *schemas.Decision) string {
	if d.Message == "" {
		return fmt.Sprintf("%s by %s.", outcome, who(d.By))
	}
	return fmt.Sprintf("%s by %s: %s", outcome, who(d.By), d.Message)
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

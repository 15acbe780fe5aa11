// Package doctor looks at everything that has to be right for an agent's
// question to reach a person and the answer to come back, and says of each
// thing how it is and what to do about it. It changes nothing.
package doctor

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/agents/hook"
)

// Level is how much is amiss.
type Level string

// The levels.
const (
	OK    Level = "ok"
	Note  Level = "note"  // worth knowing; nod works
	Wrong Level = "wrong" // something does not work, or is not safe
)

// Finding is one thing that was looked at.
type Finding struct {
	Check string `json:"check"` // what was looked at
	Level Level  `json:"level"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"` // what to do about it
}

// Options say what to look at.
type Options struct {
	Place   bus.Place // with its defaults
	DataDir string    // the place's, as a full path
	Version string    // of this nod
	Log     *slog.Logger
	// Try tries a hook; nil is hook.Host.Probe.
	Try func(ctx context.Context, host hook.Host, i hook.Installed) error
}

// Examine looks at everything. A check that cannot be made is a finding too.
func Examine(ctx context.Context, o Options) []Finding {
	all := files(o.DataDir)
	all = append(all, serviceFindings(ctx, o)...)
	all = append(all, throughBus(ctx, o)...)
	return append(all, hooks(ctx, o)...)
}

// Healthy reports whether nothing is wrong.
func Healthy(all []Finding) bool {
	for _, f := range all {
		if f.Level == Wrong {
			return false
		}
	}
	return true
}

func ok(check, what string) Finding        { return Finding{check, OK, what, ""} }
func note(check, what, do string) Finding  { return Finding{check, Note, what, do} }
func wrong(check, what, do string) Finding { return Finding{check, Wrong, what, do} }

// failed is a finding of an error that says itself what to do.
func failed(check string, err error) Finding { return wrong(check, err.Error(), "") }

// versions is a finding about two parts of nod that have to understand each
// other: those one minor version apart do.
func versions(check, what, theirs, ours, do string) Finding {
	what += " is version " + theirs
	if theirs == ours {
		return ok(check, what)
	}
	what += ", and this nod " + ours
	if apart(theirs, ours) {
		return wrong(check, what+": they are too far apart", do)
	}
	return note(check, what, do)
}

// apart reports whether two versions are more than one minor version apart, as
// far as they can be read.
func apart(a, b string) bool {
	am, an, aok := majorMinor(a)
	bm, bn, bok := majorMinor(b)
	return aok && bok && (am != bm || an-bn > 1 || bn-an > 1)
}

func majorMinor(version string) (major, minor int, ok bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return major, minor, err == nil && err2 == nil
}

// patience bounds each question to something outside.
const patience = 10 * time.Second

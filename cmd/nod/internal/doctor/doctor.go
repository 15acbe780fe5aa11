// Package doctor checks an installation: whether a request can reach a person, and whether the answer
// can reach the agent. Each finding names the state and, if needed, the remedy. The checks change
// nothing.
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

// Level is the severity of a finding.
type Level string

// The levels, from best to worst.
const (
	OK    Level = "ok"
	Note  Level = "note"  // nod works, but the fact is worth knowing
	Wrong Level = "wrong" // a part does not work, or is not safe
)

// Finding is the result of one check.
type Finding struct {
	Check string `json:"check"` // the name of the check
	Level Level  `json:"level"`
	What  string `json:"what"`         // the state that was found
	Do    string `json:"do,omitempty"` // the remedy, if there is one
}

// Options configure Examine.
type Options struct {
	Place   bus.Place // the bus to check, with defaults filled in
	DataDir string    // the data directory of the bus, as an absolute path
	Version string    // this nod's version
	Log     *slog.Logger
	// Try makes a test call of a hook. If Try is nil, Examine uses hook.Host.Probe.
	Try func(ctx context.Context, host hook.Host, i hook.Installed) error
}

// Examine makes all checks. If a check cannot be made, the result contains a finding that says so.
func Examine(ctx context.Context, o Options) []Finding {
	all := files(o.DataDir)
	all = append(all, serviceFindings(ctx, o)...)
	all = append(all, containment()...)
	all = append(all, throughBus(ctx, o)...)
	return append(append(all, hooks(ctx, o)...), ungated()...)
}

// Healthy reports whether no finding has the level Wrong.
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

// failed returns a finding with the level Wrong for an error. The error's text names the remedy.
func failed(check string, err error) Finding { return wrong(check, err.Error(), "") }

// versions compares the versions of two parts of nod. The finding is OK for equal versions, Wrong for
// versions that are more than one minor version apart, and otherwise a Note.
func versions(check, what, theirs, ours, do string) Finding {
	what += " is version " + theirs
	if theirs == ours {
		return ok(check, what)
	}
	what += ", and this nod " + ours
	if apart(theirs, ours) {
		return wrong(check, what+": they do not work together", do)
	}
	return note(check, what, do)
}

// apart reports whether two versions are more than one minor version apart. It returns false for a
// version that it cannot parse.
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

// checkTimeout is the time limit of each call to another program.
const checkTimeout = 10 * time.Second

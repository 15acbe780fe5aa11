package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/logchain"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

type logCmd struct {
	Tail   logTailCmd   `cmd:"" help:"Print the newest entries of the log."`
	Search logSearchCmd `cmd:"" help:"Print the entries of the log that match."`
	Export logExportCmd `cmd:"" help:"Print the log as NDJSON, for nod log verify and other programs."`
	Verify logVerifyCmd `cmd:"" help:"Check the log against its signed checkpoints."`
}

// readLog calls f with each entry of the running nod's log. It returns an error if the server sends nothing
// for callTimeout, or if the user stops the command, because the entries are then incomplete. If it follows
// the log, it waits for entries without a limit, and a stop by the user is no error.
func (e *env) readLog(from bus.LogStart, f func(sequence uint64, entry []byte) error) error {
	_, conn, done, err := e.join(roles.ID{Role: roles.OwnerStore})
	if err != nil {
		return err
	}
	defer done()
	if from.Follow {
		err = conn.EachLine(e.ctx, from, f)
		if errors.Is(err, context.Canceled) && e.ctx.Err() != nil {
			return nil
		}
		return err
	}
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	silence := time.AfterFunc(callTimeout, cancel)
	err = conn.EachLine(ctx, from, func(sequence uint64, entry []byte) error {
		silence.Stop() // f may take long, because it may wait for a pager
		defer silence.Reset(callTimeout)
		if err := ctx.Err(); err != nil { // entries that arrived before the stop may still be delivered
			return err
		}
		return f(sequence, entry)
	})
	if errors.Is(err, context.Canceled) && e.ctx.Err() == nil {
		return fmt.Errorf("read the log: the server has sent nothing for %s: try again", callTimeout)
	}
	return err
}

// logFormat is the flag that chooses between exported lines and lines for people.
type logFormat struct {
	JSON bool `name:"json" help:"Print exported lines: NDJSON with each entry and its sequence."`
}

func printExported(w io.Writer, sequence uint64, entry []byte) error {
	_, err := fmt.Fprintf(w, "%s\n", logchain.Line(sequence, entry))
	return err
}

// describeEntry returns one line: the local time, the event, the session, the tool, the
// outcome, the agent or person, and the rule.
func describeEntry(e *schemas.LogEntry) string {
	cells := []string{e.At.Local().Format(time.DateTime), fmt.Sprintf("%-10s", people.Line(string(e.Kind)))}
	request := e.SessionID
	if e.PendingID != "" {
		request += "/" + e.PendingID
	}
	who := e.Actor
	if e.Agent != "" && e.Agent != e.Actor {
		who = e.Agent + ", by " + e.Actor
	}
	more := e.Rule
	switch {
	case e.Checkpoint != nil:
		more = fmt.Sprintf("entries %d to %d, %s", e.Checkpoint.First, e.Checkpoint.Last, e.Checkpoint.Hash)
	case e.Aftermath != nil:
		more = string(e.Aftermath.Kind) + ": " + e.Aftermath.Reason
	case e.Run != nil:
		more = fmt.Sprintf("exit code %d, changed %d files, refused %d connections", e.Run.ExitCode, e.Run.Changes, len(e.Run.Refused))
	}
	for _, cell := range []string{request, e.ToolName, string(e.Outcome), who, more} {
		if cell != "" {
			cells = append(cells, people.Line(cell))
		}
	}
	return strings.Join(cells, "  ")
}

type logTailCmd struct {
	logFormat
	Limit  int  `short:"n" default:"20" placeholder:"N" help:"The number of entries (${default})."`
	Follow bool `short:"f" help:"Also print new entries, until Ctrl-C."`
}

func (c *logTailCmd) Run(e *env) error {
	if c.Limit < 1 {
		return errors.New("--limit: give 1 or more")
	}
	return e.readLog(bus.LogStart{Newest: c.Limit, Follow: c.Follow}, func(sequence uint64, entry []byte) error {
		if c.JSON {
			return printExported(e.stdout, sequence, entry)
		}
		line, err := bus.LoadEntry(sequence, entry)
		if err == nil {
			_, err = fmt.Fprintln(e.stdout, describeEntry(&line))
		}
		return err
	})
}

type logSearchCmd struct {
	logFormat
	Who     string          `placeholder:"NAME" help:"Entries of this agent or person."`
	Session string          `placeholder:"S" help:"Entries of this session."`
	Tool    string          `placeholder:"NAME" help:"Entries about this tool, such as Bash."`
	Kind    schemas.LogKind `placeholder:"KIND" help:"Entries of this kind, such as decided, granted, revoked, settings or frozen."`
	Outcome outcomeFlag     `placeholder:"OUTCOME" help:"Decisions with this outcome: allowed, denied, cancelled (or dismissed), timed_out (or expired) or withdrawn."`
	Since   moment          `placeholder:"TIME" help:"Entries since then: 8h, 7d, 2026-01-18 or a time in RFC 3339."`
	Until   moment          `placeholder:"TIME" help:"Entries before then."`
	Words   []string        `arg:"" optional:"" help:"Words that all occur in the entry."`
}

// Run prints the entries that pass all filters, the oldest first.
func (c *logSearchCmd) Run(e *env) error {
	found := 0
	out := bufio.NewWriter(e.stdout)
	err := e.readLog(bus.LogStart{Since: time.Time(c.Since)}, func(sequence uint64, entry []byte) error {
		line, err := bus.LoadEntry(sequence, entry)
		if err != nil {
			return err
		}
		text := describeEntry(&line)
		if !c.matches(&line, text) {
			return nil
		}
		found++
		if c.JSON {
			return printExported(out, sequence, entry)
		}
		_, err = fmt.Fprintln(out, text)
		return err
	})
	if err == nil && found == 0 {
		fmt.Fprintln(e.stderr, "no entry of the log matches")
	}
	return errors.Join(err, out.Flush())
}

// matches reports whether an entry passes all filters. The parameter text is the description of the entry.
func (c *logSearchCmd) matches(e *schemas.LogEntry, text string) bool {
	name, _, _ := strings.Cut(e.Actor, "@") // some entries name a person together with the channel
	text = strings.ToLower(text + " " + string(e.Request))
	return (c.Who == "" || c.Who == e.Actor || c.Who == name || c.Who == e.Agent) &&
		(c.Session == "" || c.Session == e.SessionID) &&
		(c.Tool == "" || c.Tool == e.ToolName) &&
		(c.Kind == "" || c.Kind == e.Kind) &&
		(c.Outcome == "" || schemas.Outcome(c.Outcome) == e.Outcome) &&
		!e.At.Before(time.Time(c.Since)) &&
		(time.Time(c.Until).IsZero() || e.At.Before(time.Time(c.Until))) &&
		!slices.ContainsFunc(c.Words, func(w string) bool { return !strings.Contains(text, strings.ToLower(w)) })
}

type logExportCmd struct {
	Since moment `placeholder:"TIME" help:"Entries that were stored since then: 8h, 7d, 2026-01-18 or a time in RFC 3339."`
}

func (c *logExportCmd) Run(e *env) error {
	out := bufio.NewWriter(e.stdout)
	err := e.readLog(bus.LogStart{Since: time.Time(c.Since)}, func(sequence uint64, entry []byte) error {
		return printExported(out, sequence, entry)
	})
	return errors.Join(err, out.Flush())
}

type logVerifyCmd struct {
	File string   `arg:"" optional:"" type:"path" help:"An exported log, or - for standard input; without it, the log of the running nod."`
	Key  []string `placeholder:"U…" help:"A trusted public key of an engine; it may be given several times. Without it, the key in the data directory; see nod keys list."`
	Head string   `placeholder:"HASH" help:"A checkpoint that an earlier run printed: the log must still contain it."`
	JSON bool     `name:"json" help:"Print the report as JSON."`
}

// Run compares the log with its checkpoints and prints the result. It succeeds only if all
// checkpoints agree with the entries and are signed with a trusted key.
func (c *logVerifyCmd) Run(e *env) error {
	keys, err := c.trusted(e)
	if err != nil {
		return err
	}
	v := logchain.Verifier{Keys: keys}
	if err := c.eachLine(e, v.Add); err != nil {
		return err
	}
	r := v.Report(c.Head)
	if c.JSON {
		if err := e.printJSON(r); err != nil {
			return err
		}
	} else {
		c.describe(e.stdout, &r)
	}
	return judgeLog(&r, len(keys) > 0)
}

// trusted returns the keys in the flags. Without these flags it returns the engine's key in the data
// directory, if there is one, and the earlier keys that this key has replaced.
func (c *logVerifyCmd) trusted(e *env) ([]string, error) {
	if len(c.Key) > 0 {
		return c.Key, nil
	}
	place, err := e.place.WithDefaults()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(place.DataDir, "keys")); err != nil {
		return nil, nil // this machine has no key to trust, because the log is from another machine; the report names the log's keys
	}
	keys, err := roles.OpenKeys(place.DataDir)
	if err != nil {
		return nil, err
	}
	user, err := keys.User(roles.ID{Role: roles.EngineStore})
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	replaced, err := keys.Replaced(user.ID)
	return append(replaced, user.PublicKey), err
}

func (c *logVerifyCmd) eachLine(e *env, add func(line []byte)) error {
	if c.File == "" {
		return e.readLog(bus.LogStart{}, func(sequence uint64, entry []byte) error {
			add(logchain.Line(sequence, entry))
			return nil
		})
	}
	in := e.stdin
	if filepath.Base(c.File) != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return fmt.Errorf("read the exported log: %w", err)
		}
		defer f.Close()
		in = f
	}
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			add(bytes.TrimSuffix(line, []byte("\n")))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the exported log: %w", err)
		}
	}
}

func (c *logVerifyCmd) describe(w io.Writer, r *logchain.Report) {
	fmt.Fprintf(w, "entries: %d, from %d to %d\n", r.Entries, r.First, r.Last)
	fmt.Fprintf(w, "checkpoints: %d\n", len(r.Checkpoints))
	for _, key := range r.Keys {
		fmt.Fprintf(w, "signed with: %s\n", key)
	}
	if r.Open > 1 {
		fmt.Fprintf(w, "not covered yet: the newest %d entries, since %s; an engine writes a checkpoint each minute\n", r.Open, r.OpenSince.Local().Format(time.DateTime))
	}
	for _, f := range r.Faults {
		fmt.Fprintln(w, "FAULT:", f.What)
	}
	if n := len(r.Checkpoints); n > 0 && r.FaultCount == 0 {
		head := r.Checkpoints[n-1]
		fmt.Fprintf(w, "newest checkpoint, %s: %s\nKeep this hash in another place. Later, nod log verify --head HASH also shows that the log has not lost its end.\n", head.At.Local().Format(time.DateTime), head.Hash)
	}
}

// judgeLog returns an error unless the report shows that the log is unchanged.
func judgeLog(r *logchain.Report, trusted bool) error {
	switch {
	case r.FaultCount > 0:
		return fmt.Errorf("the log does not agree with its checkpoints: the first fault is at entry %d, faults in all: %d", r.Faults[0].Sequence, r.FaultCount)
	case len(r.Checkpoints) == 0:
		return errors.New("the log has no checkpoint, so nothing is shown: an engine writes the first one within a minute of the first entry")
	case r.Unsigned > 0:
		return errors.New("the log has checkpoints without a signature, so anyone who can write it can change them too: engines with a key (--creds) sign them")
	case !trusted:
		return fmt.Errorf("all checkpoints agree, but no key is trusted yet: if %s is your engine's key (nod keys list), name it with --key", cmp.Or(strings.Join(r.Keys, " or "), "the key"))
	}
	return nil
}

// moment is a time in a flag: a duration before now, a date, or a time in RFC 3339.
type moment time.Time

// UnmarshalText reads "8h", "7d", "2026-01-18" or "2026-01-18T12:00:00Z".
func (m *moment) UnmarshalText(text []byte) error {
	var back span
	if err := back.UnmarshalText(text); err == nil {
		*m = moment(time.Now().Add(-time.Duration(back)))
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, string(text), time.Local); err == nil {
			*m = moment(at)
			return nil
		}
	}
	return fmt.Errorf("%q is no time: write 8h, 7d, 2026-01-18 or 2026-01-18T12:00:00Z", text)
}

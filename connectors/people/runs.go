package people

import (
	"fmt"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// RunText describes in one line the contained run of a call (the run of a command held to its project by
// the kernel). It returns "" if no contained run of the call was allowed.
func RunText(p *schemas.Prompt) string {
	run := p.Run
	switch {
	case run == nil:
		return ""
	case run.RunID == "":
		return "may run contained, has not started"
	case run.Report == nil:
		return "started contained, has not reported its end"
	}
	r := run.Report
	text := fmt.Sprintf("ran contained: exit code %d, %s changed", r.ExitCode, schemas.Count(r.Changes, "file"))
	if len(r.Changed) > 0 {
		text += " (" + cut(Line(strings.Join(r.Changed, ", ")), maxQuoted) + ")"
	}
	if len(r.Refused) > 0 {
		text += "; refused: " + cut(Line(strings.Join(r.Refused, ", ")), maxQuoted)
	}
	if r.Partial {
		text += "; the lists are not complete"
	}
	return text
}

// RunTally counts the contained runs of a session, from pages of its requests.
type RunTally struct {
	runs, failed, changes int
	refused               map[string]bool
}

// Add counts the runs of a page's requests. The error is always nil.
func (t *RunTally) Add(page []schemas.Prompt) error {
	for i := range page {
		run := page[i].Run
		if run == nil || run.Report == nil {
			continue
		}
		if t.runs++; run.Report.ExitCode != 0 {
			t.failed++
		}
		t.changes += run.Report.Changes
		for _, host := range run.Report.Refused {
			if t.refused == nil {
				t.refused = map[string]bool{}
			}
			t.refused[host] = true
		}
	}
	return nil
}

// Text returns the counts in one line, or "" if there are no runs.
func (t *RunTally) Text() string {
	if t.runs == 0 {
		return ""
	}
	return fmt.Sprintf("%s contained, %d failed; %s changed; %s refused", schemas.Count(t.runs, "call"), t.failed, schemas.Count(t.changes, "file"), schemas.Count(len(t.refused), "host"))
}

package people

import (
	"fmt"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// RunText describes the contained run of a call in one line. It returns "" if the call was not allowed
// to run contained.
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
	text := fmt.Sprintf("ran contained: exit code %d, %s changed", r.ExitCode, count(r.Changes, "file"))
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

// RunsText summarizes the contained runs of a session in one line. It returns "" if there are none.
func RunsText(prompts []schemas.Prompt) string {
	runs, changes, failed := 0, 0, 0
	refused := map[string]bool{}
	for i := range prompts {
		run := prompts[i].Run
		if run == nil || run.Report == nil {
			continue
		}
		if runs++; run.Report.ExitCode != 0 {
			failed++
		}
		changes += run.Report.Changes
		for _, host := range run.Report.Refused {
			refused[host] = true
		}
	}
	if runs == 0 {
		return ""
	}
	return fmt.Sprintf("%s contained, %d failed; %s changed; %s refused", count(runs, "call"), failed, count(changes, "file"), count(len(refused), "host"))
}

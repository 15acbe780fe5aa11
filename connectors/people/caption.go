package people

import (
	"path"
	"strings"

	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

// maxItem is the largest width, in columns, of an item of a caption. maxSentence is the largest width
// of the last item, the risk with its reasons.
const (
	maxItem     = 40
	maxSentence = 400
)

// caption returns the line below the payload: the agent's program, the project and directory, the
// session's label, and the risk with its reasons. An example is "— Claude Code · app · fix-ci · high:
// deletes files outside the project". cwd is the directory of the call, or empty. Only the last item
// can contain the separator "·".
func caption(p *schemas.Prompt, cwd string) Part {
	items := lines(
		captionItem(orElse(p.Request.AgentName, p.Agent)),
		captionItem(place(p.Request.Project, cwd)),
		captionItem(p.Request.SessionLabel))
	text, style := captionMark, riskStyle(p.Risk)
	for _, item := range items {
		text += item + " · "
	}
	from := len(text)
	text += cut(riskSentence(p), maxSentence)
	return Part{Label: text, Caption: true, Spans: [][]payload.Span{{{From: 0, To: from, Style: payload.Faint}, {From: from, To: len(text), Style: style}}}}
}

// riskStyle returns the style of a risk. A risk that this version does not know looks like a high one.
func riskStyle(r schemas.Risk) payload.Style {
	switch r {
	case schemas.RiskLow:
		return payload.RiskLow
	case schemas.RiskMedium:
		return payload.RiskMedium
	}
	return payload.RiskHigh
}

func captionItem(text string) string {
	return cut(strings.ReplaceAll(Line(text), "·", "⟦U+00B7⟧"), maxItem)
}

// place returns the project's name with the directory in it, such as "app" or "app/web". For a
// directory outside the project it returns the full path too, such as "app, in /etc".
func place(project, cwd string) string {
	name := path.Base(project)
	switch below, inside := strings.CutPrefix(cwd, strings.TrimSuffix(project, "/")+"/"); {
	case project == "":
		return cwd
	case cwd == "" || cwd == project:
		return name
	case inside && cwd == path.Clean(cwd):
		return name + "/" + below
	}
	return name + ", in " + cwd
}

// riskSentence returns the risk with its reasons as one sentence, such as "high: deletes files outside
// the project" or "low risk".
func riskSentence(p *schemas.Prompt) string {
	var all []string
	outside := false
	for _, reason := range p.Reasons {
		if reason == "outside the project" {
			outside = true
			continue
		}
		all = append(all, Line(reason))
	}
	text := strings.Join(all, ", ")
	if n := len(all); n > 1 {
		text = strings.Join(all[:n-1], ", ") + " and " + all[n-1]
	}
	switch {
	case outside && text == "":
		text = "names files outside the project"
	case outside:
		text += " outside the project"
	}
	if text == "" {
		return riskWord(p.Risk) + " risk"
	}
	return riskWord(p.Risk) + ": " + text
}

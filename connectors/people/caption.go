package people

import (
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

// maxItem is the largest width, in columns, of an item of a caption.
const maxItem = 40

// caption returns the line below the payload: the agent's program, the project and directory, and the
// session's label, such as "— Claude Code · app · fix-ci". cwd is the directory of the call, or empty.
func caption(p *schemas.Prompt, cwd string) Part {
	items := lines(captionItem(orElse(p.Request.AgentName, p.Agent)), captionItem(place(p.Request.Project, cwd)), captionItem(p.Request.SessionLabel))
	text := captionMark + strings.Join(slices.Compact(items), " · ") // a session's label is often the project's name
	return Part{Label: text, Caption: true, Spans: [][]payload.Span{{{From: 0, To: len(text), Style: payload.Faint}}}}
}

// riskStyle returns the style of a risk. A risk that this version does not know has the style of a high
// risk.
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

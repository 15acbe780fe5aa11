package people

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

// The limits of a headline: the number of objects (files, hosts, …) for one reason, the width of an
// object, and the width of the whole line. Widths are in columns.
const (
	maxObjects  = 3
	maxObject   = 60
	maxHeadline = 400
)

// headline returns the line above the payload. It contains the risk and, for each reason for the
// risk, a verb, its objects and where they are, such as "high: deletes whole directories
// (/home/ann/old) outside the project". The objects are texts of the agent and have no style. All
// other words have the style of the risk.
func headline(p *schemas.Prompt) Part {
	h := headlineText{style: riskStyle(p.Risk), project: p.Request.Project}
	reasons := slices.DeleteFunc(slices.Clone(p.Reasons), func(r string) bool { return r == schemas.OutsideProject })
	outside := len(reasons) < len(p.Reasons)
	if len(p.Reasons) == 0 {
		h.own(riskWord(p.Risk) + " risk")
		return h.part()
	}
	h.own(riskWord(p.Risk) + ": ")
	told := map[string]bool{} // the objects outside the project that the line already names
	for i, reason := range reasons {
		if i > 0 {
			h.own("; ")
		}
		h.own(Line(reason))
		h.objects(p.Targets, reason, told)
	}
	if !outside {
		return h.part()
	}
	rest := slices.DeleteFunc(slices.Clone(p.Targets), func(t schemas.Target) bool {
		return t.Does != schemas.OutsideProject || told[orElse(t.Path, t.Name)]
	})
	switch {
	case len(rest) > 0:
		if len(reasons) > 0 {
			h.own("; ")
		}
		h.own("names")
		h.objects(rest, schemas.OutsideProject, told)
	case len(told) > 0:
	case len(reasons) == 0:
		h.own("names files outside the project")
	default:
		h.own(" outside the project")
	}
	return h.part()
}

// RiskWords returns the reasons for the risk without their objects, such as "deletes whole
// directories, uses the network and names a place outside the project".
func RiskWords(p *schemas.Prompt) string {
	var all []string
	for _, reason := range p.Reasons {
		if reason == schemas.OutsideProject {
			reason = "names a place outside the project"
		}
		all = append(all, Line(reason))
	}
	text := strings.Join(all, ", ")
	if n := len(all); n > 1 {
		text = strings.Join(all[:n-1], ", ") + " and " + all[n-1]
	}
	return text
}

// headlineText builds the text and the styles of a headline.
type headlineText struct {
	b       strings.Builder
	spans   []payload.Span
	style   payload.Style
	project string
}

func (h *headlineText) own(text string) {
	from := h.b.Len()
	h.b.WriteString(text)
	if n := len(h.spans); n > 0 && h.spans[n-1].To == from {
		h.spans[n-1].To = h.b.Len()
		return
	}
	h.spans = append(h.spans, payload.Span{From: from, To: h.b.Len(), Style: h.style})
}

// objects appends the objects of one reason in up to three groups: objects outside the project, objects
// whose place is unknown, and objects in the project. After each group it says where the objects are. It
// adds the objects outside the project to told.
func (h *headlineText) objects(all []schemas.Target, reason string, told map[string]bool) {
	lead := " "
	for _, place := range []schemas.Place{schemas.PlaceOutside, "", schemas.PlaceProject} {
		var names []string
		for i := range all {
			t := &all[i]
			if t.Does != reason || t.Place != place {
				continue
			}
			if name := objectName(t, h.project); !slices.Contains(names, name) {
				names = append(names, name)
			}
			if place == schemas.PlaceOutside {
				told[orElse(t.Path, t.Name)] = true
			}
		}
		if len(names) == 0 {
			continue
		}
		h.own(lead + "(")
		lead = " and "
		for i, name := range names[:min(len(names), maxObjects)] {
			if i > 0 {
				h.own(", ")
			}
			h.b.WriteString(name)
		}
		h.own(more(len(names)-maxObjects) + ")" + placeWords[place])
	}
}

// placeWords says where an object is. An object whose place is unknown has no words.
var placeWords = map[schemas.Place]string{schemas.PlaceOutside: " outside the project", schemas.PlaceProject: " in the project"}

// objectName returns the name of an object as the call contains it. If nod knows the full path and the
// name hides the place, it returns the path. A name hides the place if the object is outside the project,
// or if the name is ".", contains "..", or begins with "~" or "$". For a file in the project that the call
// names by a full path, objectName returns the path from the project on.
func objectName(t *schemas.Target, project string) string {
	name := t.Name
	below, inside := strings.CutPrefix(t.Path, strings.TrimSuffix(project, "/")+"/")
	switch {
	case t.Path == "":
	case t.Place == schemas.PlaceProject && path.IsAbs(name) && inside && project != "":
		name = below
	case t.Place == schemas.PlaceOutside, name == ".", strings.Contains("/"+name+"/", "/../"), strings.ContainsAny(name[:min(1, len(name))], "~$/"):
		name = t.Path
	}
	return cut(Line(name), maxObject)
}

func (h *headlineText) part() Part {
	text := h.b.String()
	if short := cut(text, maxHeadline); short != text {
		h.spans = within(h.spans, 0, len(strings.TrimSuffix(short, cutMark)), 0)
		text = short
	}
	return Part{Label: text, Caption: true, Spans: [][]payload.Span{h.spans}}
}

// more returns a text with the number of things that a list leaves out.
func more(n int) string {
	switch {
	case n < 1:
		return ""
	case n == 1:
		return " and 1 more"
	}
	return " and " + strconv.Itoa(n) + " more"
}

// whereLines returns lines that say where a call takes effect: first a line for each place that is no file,
// such as a server, then a line with the full path of each file and whether the file is in the project. The
// last line is the directory in which the call runs.
func whereLines(p *schemas.Prompt, cwd string) (all []string) {
	var places, files []string
	for i := range p.Targets {
		switch t := &p.Targets[i]; {
		case t.Path != "":
			files = addPlace(files, t.Path, t.Place)
		case t.Does == schemas.ActsOn:
			places = addPlace(places, t.Name, t.Place)
		}
	}
	if len(places) == 0 {
		places = serviceOf(&p.Request)
	}
	for _, list := range [][]string{places, files} {
		all = append(all, list[:min(len(list), maxObjects)]...)
		if n := len(list) - maxObjects; n > 0 {
			all = append(all, strings.TrimSpace(more(n)))
		}
	}
	if cwd == "" && p.Request.Kind != schemas.KindToolCall {
		return all
	}
	verb := "asked in "
	if p.Request.ActionType == schemas.ActionCommand {
		verb = "runs in "
	}
	return append(all, verb+orElse(Line(cwd), "(not said)")+projectNote(p.Request.Project, cwd))
}

func addPlace(list []string, name string, place schemas.Place) []string {
	text := cut(Line(name), 2*maxObject)
	if words := strings.TrimSpace(placeWords[place]); words != "" {
		text += ", " + words
	}
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// serviceOf returns the host of the address that a call fetches, or the MCP server of the call's tool.
func serviceOf(r *schemas.Request) []string {
	if r.Kind != schemas.KindToolCall {
		return nil
	}
	if r.ActionType == schemas.ActionNetwork {
		fields, _ := fieldsOf(r.ActionDetails)
		_, address := (&action{fields: fields}).first("url")
		if hosts := payload.URL(address); len(hosts) > 0 {
			return addPlace(nil, address[hosts[0].From:hosts[0].To], "")
		}
	}
	if rest, ok := strings.CutPrefix(r.ToolName, "mcp__"); ok {
		if server, _, ok := strings.Cut(rest, "__"); ok && server != "" {
			return addPlace(nil, "the MCP server "+server, "")
		}
	}
	return nil
}

// projectNote returns a text that says whether a directory is in its project.
func projectNote(project, cwd string) string {
	switch {
	case project == "":
		return ""
	case cwd == project:
		return ", the project"
	case cwd == "":
		return "; project: " + Line(project)
	case strings.HasPrefix(cwd, strings.TrimSuffix(project, "/")+"/") && cwd == path.Clean(cwd):
		return ", in the project " + Line(project)
	}
	return ", outside the project " + Line(project)
}

// unseenPart returns a part that names code which the call runs and which its input does not contain,
// such as a script file.
func unseenPart(p *schemas.Prompt) []Part {
	if len(p.Unseen) == 0 {
		return nil
	}
	var all []string
	for _, code := range p.Unseen[:min(len(p.Unseen), maxObjects)] {
		all = append(all, cut(Line(code), 2*maxObject))
	}
	return []Part{{Label: "Not shown", Lines: []string{strings.Join(all, ", ") + more(len(p.Unseen)-maxObjects)}}}
}

package people

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

// action collects the parts of a prompt that show the input of a tool call. Its slice fields contains the
// input's fields that no part shows yet.
type action struct {
	r      *schemas.Request
	onDisk *schemas.DiskFile // nil if nod has not read the file that the call writes
	parts  []Part
	fields []field
	size   size
}

// actionParts returns parts that show a call in the form that fits its input: a command as a command
// line, an edit as a diff, an address as an address. Every other field follows with its name, so the
// parts show the whole input. If the input's field cwd is a non-empty string, actionParts returns it
// as cwd. onDisk is the file that the call writes, or nil if nod has not read it. told are the reasons for the
// risk that the headline has.
func actionParts(r *schemas.Request, onDisk *schemas.DiskFile, told []string) (parts []Part, cwd string) {
	raw := bytes.TrimSpace(r.ActionDetails)
	fields, err := fieldsOf(raw)
	if err != nil {
		lines, spans := jsonLines(raw)
		s := size{told: told}
		s.add(lines)
		return append(s.part(), Part{Label: "Input, as sent (" + err.Error() + ")", Quote: true, Lines: lines, Spans: spans}), ""
	}
	a := &action{r: r, onDisk: onDisk, fields: fields, size: size{told: told}}
	if _, cwd = a.first("cwd"); cwd != "" {
		a.drop("cwd")
	}
	switch {
	case r.Kind == schemas.KindPermission:
	case r.Kind == schemas.KindQuestion:
		a.question()
	case a.command(), a.edit(), a.edits(), a.notebook(), a.patch(), a.write(), a.fetch(), a.read():
	default:
		a.call()
	}
	slices.SortStableFunc(a.fields, func(x, y field) int { return order(x.name) - order(y.name) })
	for _, f := range a.fields {
		a.field(f)
	}
	return append(a.size.part(), a.parts...), cwd
}

// Directory returns the directory in which a call acts, as the agent sent it. The result is empty if the
// input does not name a directory.
func Directory(r *schemas.Request) string {
	fields, err := fieldsOf(bytes.TrimSpace(r.ActionDetails))
	if err != nil {
		return ""
	}
	_, cwd := (&action{fields: fields}).first("cwd")
	return cwd
}

// text returns the value of a field that is a string.
func (a *action) text(name string) (string, bool) {
	for _, f := range a.fields {
		if f.name == name {
			return textOf(f.raw)
		}
	}
	return "", false
}

// first returns the first of the given names under which the input has a non-empty string, and that
// string.
func (a *action) first(names ...string) (name, text string) {
	for _, name := range names {
		if text, ok := a.text(name); ok && text != "" {
			return name, text
		}
	}
	return "", ""
}

// drop removes the fields with these names, because a part already shows them.
func (a *action) drop(names ...string) {
	a.fields = slices.DeleteFunc(a.fields, func(f field) bool { return slices.Contains(names, f.name) })
}

func (a *action) quote(label, text string, styles []payload.Span) {
	a.quoteAs(label, text, styles, policy.FileText)
}

// quoteAs quotes a text of a kind, in which it looks for harm.
func (a *action) quoteAs(label, text string, styles []payload.Span, kind policy.TextKind) {
	lines, spans := quotation(text, styles)
	a.size.add(lines)
	a.size.lookIn(text, styles, kind)
	a.parts = append(a.parts, Part{Label: label, Quote: true, Lines: lines, Spans: spans})
}

// field appends a field that no other part shows.
func (a *action) field(f field) {
	part := fieldPart(f)
	if part.Quote {
		a.size.add(part.Lines)
		if text, ok := textOf(f.raw); ok {
			a.size.lookIn(text, nil, policy.FileText)
		} else {
			a.size.lookIn(string(f.raw), nil, policy.FileText)
		}
	}
	a.parts = append(a.parts, part)
}

// head appends a line with nod's verb for the call, such as Write, and the verb's object, which comes
// from the input.
func (a *action) head(verb, object string, styles []payload.Span) {
	line, spans := styledLine(object, styles)
	a.parts = append(a.parts, Part{Label: verb, Lines: []string{line}, Spans: [][]payload.Span{spans}})
}

// question appends the text of an agent's question, or the plan that a person must approve. Another part
// contains the answers; see unfolded.
func (a *action) question() {
	if plan, ok := a.text("plan"); ok && strings.TrimSpace(plan) != "" {
		a.drop("plan")
		if a.r.Title != "" {
			lines, spans := quotation(a.r.Title, nil)
			a.parts = append(a.parts, Part{Quote: true, Lines: lines, Spans: spans})
		}
		a.quoteAs("", plan, payload.Markdown(plan), policy.PlanText)
		return
	}
	name, text := a.first("question", "message", "prompt")
	if name == "" || strings.TrimSpace(a.r.Title) == strings.TrimSpace(text) {
		text = a.r.Title
	} else if a.r.Title != "" {
		a.quote("", a.r.Title, nil)
	}
	a.drop(name)
	if text != "" {
		var spans []payload.Span
		if name == "message" { // agents write their messages in Markdown
			spans = payload.Markdown(text)
		}
		a.quote("", text, spans)
	}
	a.dropAnswers()
}

// dropAnswers leaves out the field "answers" if all of its content is in the request's options and their
// explanations.
func (a *action) dropAnswers() {
	i := slices.IndexFunc(a.fields, func(f field) bool { return f.name == "answers" })
	if i < 0 || !plainObjects(a.fields[i].raw) {
		return
	}
	var all []struct {
		Answer  string `json:"answer"`
		Meaning string `json:"meaning"`
	}
	dec := json.NewDecoder(bytes.NewReader(a.fields[i].raw))
	dec.DisallowUnknownFields()
	if dec.Decode(&all) != nil {
		return
	}
	said := map[string]bool{}
	for _, one := range all {
		offered := slices.ContainsFunc(a.r.Options, func(o schemas.Option) bool { return o.Name == one.Answer })
		if !offered || said[one.Answer] { // two explanations of one answer: the option would show only the last
			return
		}
		said[one.Answer] = true
	}
	a.drop("answers")
}

// shells are programs such as bash. nod shows their argument after -c or -lc as a command line.
var shells = []string{"bash", "sh", "zsh"}

func (a *action) command() bool {
	if a.r.ActionType != schemas.ActionCommand {
		return false
	}
	if name, text := a.first("command", "cmd"); name != "" {
		a.drop(name)
		a.quoteAs("", text, payload.Shell(text), policy.CommandText)
		return true
	}
	for _, f := range a.fields {
		var argv []string
		if f.name == "command" && json.Unmarshal(f.raw, &argv) == nil && len(argv) == 3 && bytes.Count(f.raw, []byte(`\u`)) == 0 &&
			slices.Contains(shells, argv[0]) && slices.Contains([]string{"-c", "-lc"}, argv[1]) && argv[2] != "" {
			a.drop(f.name)
			a.quoteAs(argv[0]+" "+argv[1], argv[2], payload.Shell(argv[2]), policy.CommandText)
			return true
		}
	}
	return false
}

// pathFields are the field names under which the hosts' tools give the path of a file.
var pathFields = []string{"file_path", "filePath", "absolute_path", "notebook_path", "path"}

func (a *action) edit() bool {
	name, file := a.first(pathFields...)
	for _, names := range [][2]string{{"old_string", "new_string"}, {"oldString", "newString"}, {"old_str", "new_str"}} {
		before, ok1 := a.text(names[0])
		after, ok2 := a.text(names[1])
		if name == "" || !ok1 || !ok2 {
			continue
		}
		a.drop(name, names[0], names[1])
		a.diff("Edit", file, a.editOnDisk(0, 1, before, after))
		return true
	}
	return false
}

// change is one element in the field edits of the tool MultiEdit.
type change struct {
	Old *string `json:"old_string"`
	New *string `json:"new_string"`
	All bool    `json:"replace_all"`
}

func (a *action) edits() bool {
	name, file := a.first(pathFields...)
	i := slices.IndexFunc(a.fields, func(f field) bool { return f.name == "edits" })
	if name == "" || i < 0 || !plainObjects(a.fields[i].raw) {
		return false
	}
	var all []change
	dec := json.NewDecoder(bytes.NewReader(a.fields[i].raw))
	dec.DisallowUnknownFields()
	if dec.Decode(&all) != nil || len(all) == 0 || slices.ContainsFunc(all, func(c change) bool { return c.Old == nil || c.New == nil }) {
		return false
	}
	a.drop(name, "edits")
	for n, c := range all {
		verb := fmt.Sprintf("Edit %d/%d", n+1, len(all))
		if c.All {
			verb += " everywhere"
		}
		a.diff(verb, file, a.editOnDisk(n, len(all), *c.Old, *c.New))
	}
	return true
}

// plainObjects reports whether raw is a list of JSON objects that decode without a loss: no
// member name occurs twice or has capital letters, and every string is valid text.
func plainObjects(raw json.RawMessage) bool {
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return false
	}
	for _, one := range all {
		fields, err := fieldsOf(one)
		if err != nil {
			return false
		}
		for _, f := range fields {
			if _, ok := textOf(f.raw); !ok && f.raw[0] == '"' || f.name != strings.ToLower(f.name) {
				return false
			}
		}
	}
	return true
}

func (a *action) notebook() bool {
	name, file := a.first("notebook_path")
	source, ok := a.text("new_source")
	if name == "" || !ok {
		return false
	}
	a.drop(name, "new_source")
	a.diff("Edit cell", file, a.textOnDisk(source, true))
	return true
}

func (a *action) patch() bool {
	for _, name := range []string{"patch", "input", "command"} {
		text, ok := a.text(name)
		if !ok || !strings.HasPrefix(strings.TrimSpace(text), "*** Begin Patch") {
			continue
		}
		a.drop(name)
		styles, added, removed := payload.Patch(text)
		a.quote(strings.TrimSpace("Patch "+counts(added, removed)), text, styles)
		return true
	}
	return false
}

func (a *action) write() bool {
	name, file := a.first(pathFields...)
	for _, field := range []string{"content", "file_text"} {
		text, ok := a.text(field)
		if name == "" || !ok || a.r.ActionType != schemas.ActionFileWrite {
			continue
		}
		a.drop(name, field)
		a.diff("Write", file, a.textOnDisk(text, false))
		return true
	}
	return false
}

func (a *action) fetch() bool {
	name, address := a.first("url")
	if name == "" || a.r.ActionType != schemas.ActionNetwork {
		return false
	}
	a.drop(name)
	a.head("Fetch", address, payload.URL(address))
	return true
}

func (a *action) read() bool {
	name, file := a.first(pathFields...)
	verb := map[schemas.ActionType]string{schemas.ActionFileRead: "Read", schemas.ActionFileWrite: "Write"}[a.r.ActionType]
	if name == "" || verb == "" {
		return false
	}
	a.drop(name)
	a.head(verb, file, fileName(file))
	return true
}

// call appends the tool's name. It is for tools whose input nod shows field by field.
func (a *action) call() {
	a.head("Call", orElse(a.r.ToolName, orElse(a.r.Title, "a tool without a name")), nil)
	if len(a.fields) == 0 {
		a.parts = append(a.parts, Part{Label: "Input", Lines: []string{"(none)"}})
	}
}

// fileName returns a span that styles the last element of a path.
func fileName(file string) []payload.Span {
	if from := len(file) - len(path.Base(file)); from >= 0 && strings.HasSuffix(file, path.Base(file)) {
		return []payload.Span{{From: from, To: len(file), Style: payload.Key}}
	}
	return nil
}

// counts returns the number of lines that an edit adds and removes: "+2 −1".
func counts(added, removed int) string {
	var all []string
	if added > 0 {
		all = append(all, fmt.Sprintf("+%d", added))
	}
	if removed > 0 {
		all = append(all, fmt.Sprintf("−%d", removed))
	}
	return strings.Join(all, " ")
}

// overlay returns the spans of a line whose length in bytes is end. They are the spans in words, moved by
// shift bytes, and spans with the given style for all other bytes.
func overlay(style payload.Style, shift, end int, words []payload.Span) (all []payload.Span) {
	at := 0
	add := func(from, to int, style payload.Style) {
		if from < to && style != payload.Plain {
			all = append(all, payload.Span{From: from, To: to, Style: style})
		}
	}
	for _, w := range words {
		add(at, w.From+shift, style)
		add(w.From+shift, w.To+shift, w.Style)
		at = w.To + shift
	}
	add(at, end, style)
	return all
}

// styledLine sanitises a text as Line does, and returns it with the spans of its styles.
func styledLine(s string, styles []payload.Span) (string, []payload.Span) {
	lines, spans := styledLines(s, styles)
	var all []payload.Span
	at := 0
	for i, line := range lines {
		for _, span := range spans[i] {
			all = append(all, payload.Span{From: span.From + at, To: span.To + at, Style: span.Style})
		}
		at += len(line)
	}
	return strings.Join(lines, ""), all
}

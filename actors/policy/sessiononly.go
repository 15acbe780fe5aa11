package policy

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// sessionReach returns the reach that nod offers only for the session of a call, or nil. Such a reach is
// limited to files that the call names, but is not safe enough to outlive the session. others has the reaches
// that nod offers for longer.
func (ev *evaluation) sessionReach(others []schemas.Reach) *schemas.Reach {
	var rules []schemas.RememberedRule
	switch kind := ev.tool.Kind; {
	case kind == tools.Edit:
		rules = ev.sessionEdits()
	case len(others) > 0: // a person can choose a reach that lasts longer
	case kind == tools.Unknown:
		if file, why := ev.changedFile(); why == "" {
			rules = []schemas.RememberedRule{{Tool: ev.tool.Name, Path: file, Project: ev.location.Project}}
		}
	case kind == tools.File:
		if file := ev.onlyPath(); file != "" {
			rules = []schemas.RememberedRule{{Tool: ev.tool.Name, Path: file, Project: ev.standsIn()}}
		}
	}
	if len(rules) == 0 || rules[0].Project == "" {
		return nil
	}
	return &schemas.Reach{Rules: rules, Widest: schemas.ScopeSession}
}

// sessionEdits returns rules with which both tools for edits may edit the files below one directory of the
// project, the directory that editDir returns for the call's file.
func (ev *evaluation) sessionEdits() []schemas.RememberedRule {
	at := ev.onlyPath()
	if at == "" || !ev.location.InTree(at) || pathname.NeverRemembered.Has(ev.location.Relative(at), true) || ev.obeyed([]string{at}) {
		return nil
	}
	dir := editDir(at, ev.location)
	if ev.location.AboveHome(dir) {
		return nil
	}
	var rules []schemas.RememberedRule
	for _, tool := range []string{"Edit", "Write"} {
		rules = append(rules, schemas.RememberedRule{Tool: tool, Path: dir + "/", Project: ev.standsIn()})
	}
	return rules
}

// onlyPath returns the full path of the file that a call of a file tool names. If the call does not name
// exactly one file, onlyPath returns "".
func (ev *evaluation) onlyPath() string {
	in, err := tools.ReadInput(ev.call.Input)
	if err != nil {
		return ""
	}
	paths, known := in.FilePaths(ev.tool)
	if !known || len(paths) != 1 || pathname.IsGlob(paths[0]) {
		return ""
	}
	return ev.plainPath(paths[0])
}

// plainPath returns the full path that p means, or "" if p may mean several paths, as with a symbolic link.
func (ev *evaluation) plainPath(p string) string {
	if all := ev.location.Resolve(p); len(all) == 1 && strings.TrimSpace(p) == p {
		return all[0]
	}
	return ""
}

// standsIn returns the project if the call certainly runs in the project. Otherwise it returns the directory
// in which the call runs, such as a work tree beside the project, or "" if there are several.
func (ev *evaluation) standsIn() string {
	loc := ev.location
	switch {
	case len(loc.Dirs) == 0 || loc.Project != "" && inAnswersProject(&schemas.RememberedRule{Project: loc.Project}, loc):
		return loc.Project
	case len(loc.Dirs) == 1:
		return loc.Dirs[0]
	}
	return ""
}

// changedFile returns the file to which an answer for one session can keep a tool of an MCP server. If no
// answer can, the text why is the reason. The tool's name does not prove what the tool does. Therefore the
// input must name exactly one plain file of the project, and nothing outside the project or on another
// system. A text that only looks like a path counts as a second file. A session may have many rules for the
// tool, so changedFile reads the input only once.
func (ev *evaluation) changedFile() (file, why string) {
	if ev.changed == nil {
		file, why := ev.findChangedFile()
		ev.changed = &changed{file, why}
	}
	return ev.changed.file, ev.changed.why
}

// changed is a result of changedFile.
type changed struct{ file, why string }

func (ev *evaluation) findChangedFile() (file, why string) {
	if !tools.OfServer(ev.tool.Name) {
		return "", "the tool belongs to no MCP server"
	}
	if w := tools.UnboundWord(ev.tool.Name); w != "" {
		return "", "the word " + w + " in the tool's name may stand for an act that nod cannot limit"
	}
	if !tools.Writes(ev.tool.Name) {
		return "", "the tool's name says neither that it only reads nor that it writes a file"
	}
	f := inputFields{paths: map[string]bool{}}
	switch {
	case len(ev.call.Input) > maxInputBytes || !f.read(ev.call.Input):
		return "", "nod cannot read the tool's input, or not all of it"
	case f.other != "":
		return "", "the field " + f.other + " of the input may name something on another system, or an act that nod cannot limit"
	case len(f.paths) != 1:
		return "", "nod cannot keep the tool to one file, because the input does not name exactly one"
	}
	for named := range f.paths {
		file = ev.plainPath(named)
	}
	switch {
	case file == "" || path.Ext(file) == "" || pathname.IsGlob(file) || !ev.editable([]string{file}) || ev.obeyed([]string{file}):
		return "", "the input names no plain file of the project"
	case !ev.namesOnlyProject():
		return "", "the input may name a secret, a path outside the project, an address or an act"
	}
	return file, ""
}

// inputFields has what the fields of an input name, at any depth, and also in JSON inside a string.
type inputFields struct {
	paths map[string]bool // the values of the fields that name a file or a directory, and all texts that look like paths
	other string          // the name of a field that may stand for something on another system, or for an act that nod cannot limit
	count int
}

// maxInputFields is the largest number of fields that nod checks in an input.
const maxInputFields = 500

// read adds the fields of an input. It returns false if the input is not JSON, if it has too many fields, or
// if the value of a field for a file is neither a string nor a list of strings.
func (f *inputFields) read(input []byte) bool {
	in := json.NewDecoder(bytes.NewReader(input))
	in.UseNumber()
	return f.value(in, "") && !in.More()
}

func (f *inputFields) value(in *json.Decoder, field string) bool {
	token, err := in.Token()
	if err != nil {
		return false
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' && tools.NamesPath(field) {
			return false
		}
		for in.More() {
			name := field
			if token == '{' {
				key, err := in.Token()
				if err != nil {
					return false
				}
				if f.count++; f.count > maxInputFields {
					return false
				}
				if name = key.(string); tools.UnboundField(name) && f.other == "" {
					f.other = name
				}
				if looksLikePath(name) {
					f.paths[name] = true
				}
			}
			if !f.value(in, name) {
				return false
			}
		}
		_, err := in.Token()
		return err == nil
	case string:
		if tools.NamesPath(field) || field != "cwd" && looksLikePath(token) {
			f.paths[token] = true
		} else if inner := []byte(token); json.Valid(inner) {
			return f.read(inner)
		}
		if tools.UnboundValue(token) && f.other == "" {
			f.other = field
		}
		return true
	}
	return !tools.NamesPath(field)
}

// looksLikePath reports whether a text in an input may be the path of a file. The text must be one line that
// ends in a file extension, or a short line with a word that has a slash or ends in an extension.
func looksLikePath(text string) bool {
	text = strings.TrimSpace(text)
	if strings.ContainsAny(text, "\r\n") {
		return false
	}
	return extension.MatchString(text) || len(text) < maxPathLine && slices.ContainsFunc(wordsIn(text), func(w string) bool {
		return strings.ContainsAny(w, `/\`) || extension.MatchString(w)
	})
}

// maxPathLine is the length, in bytes, from which on only a line that ends in an extension counts as a path.
const maxPathLine = 256

var extension = lazyregexp.New(`\.[A-Za-z][\w+-]*$`)

package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/tailscale/hujson"
)

// document is a host's settings file. Its methods change only nod's entries, and keep every other byte.
type document struct {
	path    string
	source  []byte // the content of the file before any edit
	root    hujson.Value
	top     *hujson.Object
	indent  string
	newline string
	// head and tail are the parts of a Setup.Script before and after the settings. stale is true if the
	// file had other parts.
	head, tail string
	stale      bool
	bare       bool // see Setup.Bare
}

// scriptBegin and scriptEnd enclose the settings in a Setup.Script.
const (
	scriptBegin = "\nconst settings = "
	scriptEnd   = ";\n// The end of nod's settings."
)

var errForeignScript = errors.New("was not written by nod install")

// openDocument parses the settings file of a host. If another program wrote the file, and nod could
// only replace it as a whole, the error is errForeignScript.
func openDocument(host Host, path string, data []byte) (*document, error) {
	s := host.Setup
	if s.Script == "" {
		d, err := parseDocument(path, data, s.Comments)
		if err == nil {
			d.bare = s.Bare && filepath.Base(path) == filepath.Base(s.File)
		}
		return d, err
	}
	head, tail, _ := strings.Cut(s.Script, scriptBegin+"{}"+scriptEnd)
	settings, stale := []byte("{}"), false
	if len(bytes.TrimSpace(data)) > 0 {
		before, rest, begins := strings.Cut(string(data), scriptBegin)
		inside, after, ends := strings.Cut(rest, scriptEnd)
		if !begins || !ends {
			return nil, fmt.Errorf("%s %w %s: move it away first, nothing was changed", path, errForeignScript, host.Name)
		}
		settings, stale = []byte(inside), before != head || after != tail
	}
	d, err := parseDocument(path, settings, false)
	if err == nil {
		d.head, d.tail, d.stale = head+scriptBegin, scriptEnd+tail, stale
	}
	return d, err
}

// parseDocument parses a settings file. An empty file counts as an empty object. comments says whether
// comments are allowed. If the JSON is invalid, the error names the line and the column.
func parseDocument(path string, data []byte, comments bool) (*document, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}\n")
	}
	plain := data
	if comments {
		plain = blankComments(data)
	}
	if err := json.Unmarshal(plain, new(json.RawMessage)); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line, column := position(data, int(syntax.Offset)-1)
			return nil, fmt.Errorf("%s is not valid JSON at line %d, column %d: %w; correct it first, nothing was changed", path, line, column, err)
		}
		return nil, fmt.Errorf("read %s: %w; nothing was changed", path, err)
	}
	root, err := hujson.Parse(bytes.Clone(data))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; nothing was changed", path, err)
	}
	d := &document{path: path, source: data, root: root, indent: "  ", newline: "\n"}
	var ok bool
	if d.top, ok = root.Value.(*hujson.Object); !ok {
		return nil, fmt.Errorf("%s holds no JSON object; correct it first, nothing was changed", path)
	}
	if bytes.Contains(data, []byte("\r\n")) {
		d.newline = "\r\n"
	}
	if len(d.top.Members) > 0 {
		if in, multi := lastLine(d.top.Members[0].Name.BeforeExtra); multi && in != "" {
			d.indent = in
		}
	}
	return d, nil
}

// blankComments returns data with spaces in place of comments, so that every other byte keeps its position.
func blankComments(data []byte) []byte {
	out := bytes.Clone(data)
	for i := 0; i < len(out); i++ {
		switch {
		case out[i] == '"':
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(out[i:], []byte("//")):
			for ; i < len(out) && out[i] != '\n'; i++ {
				out[i] = ' '
			}
		case bytes.HasPrefix(out[i:], []byte("/*")):
			end := bytes.Index(out[i+2:], []byte("*/"))
			if end < 0 {
				return out
			}
			for j := i; j < i+end+4; j++ {
				if out[j] != '\n' {
					out[j] = ' '
				}
			}
			i += end + 3
		}
	}
	return out
}

func position(data []byte, offset int) (line, column int) {
	before := data[:max(0, min(offset, len(data)))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

func (d *document) bytes() []byte {
	if d.head == "" {
		return d.root.Pack()
	}
	return slices.Concat([]byte(d.head), bytes.TrimSpace(d.root.Pack()), []byte(d.tail))
}

func packed(list *hujson.Array) []byte { return hujson.Value{Value: list}.Pack() }

func isTrue(object *hujson.Object, name string) bool {
	i := agents.Member(object, name)
	if i < 0 {
		return false
	}
	on, ok := object.Members[i].Value.Value.(hujson.Literal)
	return ok && on.Bool()
}

// isOff reports whether the file turns all hooks off; see Setup.Off.
func (d *document) isOff(s Setup) bool {
	if !s.Bare {
		return isTrue(d.top, s.Off)
	}
	hooks, err := d.hooks()
	return err == nil && hooks != nil && isTrue(hooks, s.Off)
}

// setHook updates nod's hook for event, and removes its duplicates. If there is no such hook and wanted
// is true, setHook adds one. The function ours reports whether a command is nod's.
func (d *document) setHook(event string, entry hookEntry, ours func(string) bool, wanted bool) error {
	hooks, groups, err := d.find(event)
	if err != nil {
		return err
	}
	found := false
	if groups != nil {
		eachHook(groups, entry.names, func(hook *hujson.Object, command string) (keep bool) {
			if !ours(command) {
				return true
			}
			if found {
				return false
			}
			found = true
			update(hook, entry)
			return true
		})
	}
	if found || !wanted {
		return nil
	}
	switch {
	case hooks == nil:
		return d.addMember(d.top, 1, "hooks", map[string][]any{event: {entry.listElement()}})
	case groups == nil:
		return d.addMember(hooks, d.depth(), event, []any{entry.listElement()})
	}
	return d.addElement(groups, d.depth()+1, entry.listElement())
}

// depth returns how deep the events are nested in the file.
func (d *document) depth() int {
	if d.bare {
		return 1
	}
	return 2
}

// hooks returns the object whose members are the events, or nil if the file has none.
func (d *document) hooks() (*hujson.Object, error) {
	if d.bare {
		return d.top, nil
	}
	i := agents.Member(d.top, "hooks")
	if i < 0 {
		return nil, nil
	}
	hooks, ok := d.top.Members[i].Value.Value.(*hujson.Object)
	if !ok {
		return nil, d.shapeError(d.top.Members[i].Value, `"hooks" is not an object`)
	}
	return hooks, nil
}

// find returns the object whose members are the events, and the list of hooks for event. Each is nil if
// it is missing.
func (d *document) find(event string) (*hujson.Object, *hujson.Array, error) {
	hooks, err := d.hooks()
	if err != nil || hooks == nil {
		return nil, nil, err
	}
	i := agents.Member(hooks, event)
	if i < 0 {
		return hooks, nil, nil
	}
	groups, ok := hooks.Members[i].Value.Value.(*hujson.Array)
	if !ok {
		return nil, nil, d.shapeError(hooks.Members[i].Value, fmt.Sprintf("%q is not an array", event))
	}
	return hooks, groups, nil
}

func (d *document) shapeError(v hujson.Value, problem string) error {
	line, column := position(d.source, v.StartOffset)
	return fmt.Errorf("%s, line %d, column %d: %s; correct it first, nothing was changed", d.path, line, column, problem)
}

// eachHook calls the function visit for every hook that runs a command. It removes the hooks for which
// visit returns false, and then the groups that are empty. It keeps entries in any other format,
// because nod did not write them.
func eachHook(groups *hujson.Array, names entryNames, visit func(hook *hujson.Object, command string) (keep bool)) {
	each := func(list *hujson.Array) {
		for j := 0; j < len(list.Elements); j++ {
			hook, command, ok := commandOf(list.Elements[j], names.command)
			if ok && !visit(hook, command) {
				removeElement(list, j)
				j--
			}
		}
	}
	if names.flat {
		each(groups)
		return
	}
	for i := 0; i < len(groups.Elements); i++ {
		list := hooksOf(groups.Elements[i])
		if list == nil {
			continue
		}
		before := len(list.Elements)
		each(list)
		if before > 0 && len(list.Elements) == 0 {
			removeElement(groups, i)
			i--
		}
	}
}

func hooksOf(group hujson.Value) *hujson.Array {
	obj, ok := group.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	i := agents.Member(obj, "hooks")
	if i < 0 {
		return nil
	}
	list, _ := obj.Members[i].Value.Value.(*hujson.Array)
	return list
}

func commandOf(v hujson.Value, name string) (hook *hujson.Object, command string, ok bool) {
	hook, ok = v.Value.(*hujson.Object)
	if !ok {
		return nil, "", false
	}
	i := agents.Member(hook, name)
	if i < 0 {
		return nil, "", false
	}
	literal, ok := hook.Members[i].Value.Value.(hujson.Literal)
	return hook, literal.String(), ok && literal.Kind() == '"'
}

// hasEmptyHooks reports whether the file has an object "hooks" without members.
func (d *document) hasEmptyHooks() bool {
	hooks, err := d.hooks()
	return err == nil && hooks != nil && !d.bare && len(hooks.Members) == 0
}

// removeHooks removes nod's hooks for all events, and each list that is then empty. If the object
// "hooks" is then empty too, removeHooks removes it, unless keep is true. The result reports whether
// there was any hook of nod.
func (d *document) removeHooks(names entryNames, ours func(string) bool, keep bool) (removed bool) {
	hooks, err := d.hooks()
	if err != nil || hooks == nil {
		return false
	}
	for i := 0; i < len(hooks.Members); i++ {
		groups, ok := hooks.Members[i].Value.Value.(*hujson.Array)
		if !ok || len(groups.Elements) == 0 {
			continue
		}
		eachHook(groups, names, func(_ *hujson.Object, command string) bool {
			mine := ours(command)
			removed = removed || mine
			return !mine
		})
		if len(groups.Elements) == 0 {
			removeMember(hooks, i)
			i--
		}
	}
	if removed && len(hooks.Members) == 0 && !keep && !d.bare {
		removeMember(d.top, agents.Member(d.top, "hooks"))
	}
	return removed
}

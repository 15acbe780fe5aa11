package hook

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/tailscale/hujson"
)

// MCPGateName is the NAME in `nod install NAME` that puts the gate before the MCP servers of a client.
const MCPGateName = "mcp-gate"

// GatedServer is one MCP server in a client's settings, as it was before the installation of the gate,
// and as it is after it.
type GatedServer struct {
	List string `json:"list"` // the path of the list of servers, such as mcpServers
	Name string `json:"name"`
	Was  string `json:"was"` // the user's entry, byte for byte
	Is   string `json:"is"`  // the entry with the gate
}

// gatedLists are the names of lists of MCP servers in settings files. Claude Code, Cursor and Gemini CLI
// use the first name, and VS Code uses the second. Claude Code also has such a list for each project.
var gatedLists = []string{"mcpServers", "servers"}

const projectsMember = "projects"

// GateServers puts nod mcp gate before each MCP server in the file o.Settings. It returns the servers
// that it has changed. Change.Note lists the other servers. Everything else in the file stays as it is.
func GateServers(o InstallOptions, validName func(string) error) (Change, []GatedServer, error) {
	change, err := openServers(o)
	if err != nil {
		return change, nil, err
	}
	gate := gateJSON
	if isTOML(change.Path) {
		gate = gateTOML
	}
	change.conceal = concealServers(change.Path)
	gated, alone, err := gate(&change, o, validName)
	if err != nil {
		return Change{}, nil, err
	}
	if len(alone) > 0 {
		change.Note = "left alone: " + strings.Join(alone, ", ")
	}
	if names := upstreams(gated); len(names) > 0 {
		change.Note = strings.TrimPrefix(change.Note+"; ", "; ") + "its client cannot log in to a server behind the gate: if " + strings.Join(names, " or ") + " needs that, take the gate out of its entry"
	}
	if o.DryRun {
		return change, gated, nil
	}
	return change, gated, change.Write()
}

// isTOML reports whether a settings file is in TOML. Codex's file is.
func isTOML(path string) bool { return strings.EqualFold(filepath.Ext(path), ".toml") }

// gateJSON is GateServers for a JSON file.
func gateJSON(change *Change, o InstallOptions, validName func(string) error) (gated []GatedServer, alone []string, err error) {
	doc, err := parseJSONC(change.Path, change.Before)
	if err != nil {
		return nil, nil, err
	}
	found := false
	err = doc.eachServer(func(list, name string, value *hujson.Value) error {
		found = true
		was := string(plainValue(*value))
		switch left, err := doc.gate(value, name, o, validName); {
		case err != nil:
			return err
		case left != "":
			alone = append(alone, name+" ("+left+")")
		case string(plainValue(*value)) != was:
			gated = append(gated, GatedServer{list, name, was, string(plainValue(*value))})
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("%s lists no MCP servers under %s: name the client's file with --settings, or put nod mcp gate before each server yourself", change.Path, strings.Join(gatedLists, " or "))
	}
	change.After = doc.bytes()
	return gated, alone, err
}

// UngateServers removes nod mcp gate from the file o.Settings. If nobody has edited a server after
// GateServers, the server gets its earlier bytes back. From an edited server, UngateServers removes only
// the gate.
func UngateServers(o InstallOptions, known []GatedServer) (Change, error) {
	change, err := openServers(o)
	if err != nil {
		return change, err
	}
	ungate := ungateJSON
	if isTOML(change.Path) {
		ungate = ungateTOML
	}
	change.conceal = concealServers(change.Path)
	if err := ungate(&change, known); err != nil {
		return Change{}, err
	}
	if o.DryRun {
		return change, nil
	}
	return change, change.Write()
}

func ungateJSON(change *Change, known []GatedServer) error {
	doc, err := parseJSONC(change.Path, change.Before)
	if err != nil {
		return err
	}
	changed := false
	err = doc.eachServer(func(list, name string, value *hujson.Value) error {
		entry, args, command := gatedEntry(*value)
		if entry == nil || !isNamedNod(command) {
			return nil
		}
		changed = true
		for _, s := range known {
			if s.List == list && s.Name == name && sameJSON(s.Is, *value) {
				was, err := hujson.Parse([]byte(s.Was))
				value.Value = was.Value
				return err
			}
		}
		if commandAt(args) < 0 {
			return doc.ungateURL(entry, args)
		}
		ungate(entry, args)
		return nil
	})
	if change.After = change.Before; changed {
		change.After = doc.bytes()
	}
	return err
}

func openServers(o InstallOptions) (Change, error) {
	path, err := filepath.Abs(o.Settings)
	if err != nil {
		return Change{}, fmt.Errorf("find the client's settings: %w", err)
	}
	change, err := openChange(path)
	if err != nil {
		return Change{}, err
	}
	if change.isNew {
		return Change{}, fmt.Errorf("%s does not exist: name the file with the client's MCP servers with --settings", path)
	}
	return change, nil
}

// eachServer calls the function f with every entry in the lists of MCP servers.
func (d *document) eachServer(f func(list, name string, entry *hujson.Value) error) error {
	tops := map[string]*hujson.Object{"": d.top}
	order := []string{""}
	if i := agents.Member(d.top, projectsMember); i >= 0 {
		if projects, ok := d.top.Members[i].Value.Value.(*hujson.Object); ok {
			for _, m := range projects.Members {
				if project, ok := m.Value.Value.(*hujson.Object); ok {
					at := projectsMember + "/" + literal(m.Name) + "/"
					tops[at], order = project, append(order, at)
				}
			}
		}
	}
	for _, at := range order {
		for _, list := range gatedLists {
			i := agents.Member(tops[at], list)
			if i < 0 {
				continue
			}
			servers, ok := tops[at].Members[i].Value.Value.(*hujson.Object)
			if !ok {
				return fmt.Errorf("%s: %q is not an object; correct it first, nothing was changed", d.path, at+list)
			}
			for j := range servers.Members {
				if err := f(at+list, literal(servers.Members[j].Name), &servers.Members[j].Value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// gate puts the gate before one server. If the server stays unchanged, left is the reason. left is "" if
// the server already has nod's gate.
func (d *document) gate(value *hujson.Value, name string, o InstallOptions, validName func(string) error) (left string, err error) {
	entry, ok := value.Value.(*hujson.Object)
	if !ok {
		return "it is not an object", nil
	}
	at := agents.Member(entry, "command")
	if at >= 0 && slices.ContainsFunc(urlMembers, func(name string) bool { return agents.Member(entry, name) >= 0 }) {
		return bothWays, nil
	}
	if gated, _, command := gatedEntry(*value); gated != nil {
		return foreignGate(command, o.Program), nil
	}
	words := gateWords(o, name, validName)
	if at < 0 {
		return d.gateURL(entry, o.Program, words)
	}
	command := literal(entry.Members[at].Value)
	words = append(words, "--", command)
	list := agents.Member(entry, "args")
	if list < 0 {
		if err := d.addMember(entry, 3, "args", words); err != nil {
			return "", err
		}
	} else {
		args, ok := entry.Members[list].Value.Value.(*hujson.Array)
		if !ok || slices.ContainsFunc(args.Elements, func(v hujson.Value) bool { return !isString(v) }) {
			return "its args are not a list of texts", nil
		}
		if isOwnServer(command, literals(args), o.Program) {
			return "it is nod itself", nil
		}
		d.prepend(args, words)
	}
	if command == "" {
		return "", errors.New(d.path + ": the server " + name + " has a command that is not a text; correct it first, nothing was changed")
	}
	entry.Members[at].Value.Value = hujson.String(o.Program)
	return "", nil
}

// bothWays is the reason why a server with a command and a URL stays unchanged.
const bothWays = "it has a command and a URL, and its client could use the one that has no gate: remove one of them"

// gateWords returns nod's arguments for the gate of a server, up to the server's own command or URL.
func gateWords(o InstallOptions, name string, validName func(string) error) []string {
	words := append([]string{"mcp", "gate"}, o.Args...)
	if validName(name) == nil {
		words = append(words, "--name", name, "--bind")
	}
	return words
}

// isGated reports whether args are the arguments of nod mcp gate for a server. The caller must check
// that the program is nod.
func isGated(args []string) bool {
	if len(args) < 4 || args[0] != "mcp" || args[1] != "gate" {
		return false
	}
	at := slices.Index(args, "--")
	return at >= 0 && at+1 < len(args) || at < 0 && slices.Contains(args[:len(args)-1], upstreamFlag)
}

// foreignGate returns the reason why a server with a gate stays unchanged, or "" if its gate is nod's.
// It is necessary because somebody else may have written the settings, and may have named another
// program, which never asks nod.
func foreignGate(command, program string) string {
	if command == program {
		return ""
	}
	return fmt.Sprintf("its gate is another program, %s: remove it from the entry first, if you do not trust it", command)
}

// prepend adds words before the first element of args. The new elements have the same spaces and line
// breaks as that element.
func (d *document) prepend(args *hujson.Array, words []string) {
	first, rest := hujson.Extra(nil), hujson.Extra(" ")
	if len(args.Elements) > 0 {
		first = args.Elements[0].BeforeExtra
		if _, multi := lastLine(first); multi {
			rest = d.withoutComments(first)
		} else {
			args.Elements[0].BeforeExtra = rest
		}
	}
	var added []hujson.Value
	for i, word := range words {
		before := rest
		if i == 0 {
			before = d.withoutComments(first)
		}
		added = append(added, hujson.Value{BeforeExtra: before, Value: hujson.String(word)})
	}
	args.Elements = append(added, args.Elements...)
}

// isOwnServer reports whether a command is nod mcp. The program must be nod's own path or the bare name
// nod, because another program may have a path that ends in nod.
func isOwnServer(command string, args []string, program string) bool {
	return (command == program || command == "nod") && len(args) > 0 && args[0] == "mcp"
}

func isNamedNod(command string) bool {
	return strings.TrimSuffix(filepath.Base(command), ".exe") == "nod"
}

// gatedEntry returns the entry, the arguments and the command of a server whose arguments are those of
// nod mcp gate. For any other server, the entry is nil. The caller must check that the program is nod.
func gatedEntry(value hujson.Value) (entry *hujson.Object, args *hujson.Array, command string) {
	entry, ok := value.Value.(*hujson.Object)
	if !ok {
		return nil, nil, ""
	}
	i, at := agents.Member(entry, "args"), agents.Member(entry, "command")
	if i < 0 || at < 0 {
		return nil, nil, ""
	}
	args, ok = entry.Members[i].Value.Value.(*hujson.Array)
	if !ok {
		return nil, nil, ""
	}
	if !isGated(literals(args)) {
		return nil, nil, ""
	}
	return entry, args, literal(entry.Members[at].Value)
}

// commandAt returns the index of the argument --, after which the server's own command begins.
func commandAt(args *hujson.Array) int {
	return slices.Index(literals(args), "--")
}

// ungate removes the gate from the entry of a server.
func ungate(entry *hujson.Object, args *hujson.Array) {
	at := commandAt(args) + 1
	entry.Members[agents.Member(entry, "command")].Value.Value = hujson.String(literal(args.Elements[at]))
	first := args.Elements[0].BeforeExtra
	if args.Elements = args.Elements[at+1:]; len(args.Elements) == 0 {
		return
	}
	if _, multi := lastLine(args.Elements[0].BeforeExtra); !multi {
		args.Elements[0].BeforeExtra = first
	}
}

// plainValue returns the bytes of a value, without the white space and the comments around it.
func plainValue(v hujson.Value) []byte {
	v.BeforeExtra, v.AfterExtra = nil, nil
	return v.Pack()
}

// sameJSON reports whether text and v differ only in white space and comments.
func sameJSON(text string, v hujson.Value) bool {
	other, err := hujson.Parse([]byte(text))
	if err != nil {
		return false
	}
	is := v.Clone()
	is.Minimize()
	other.Minimize()
	return string(is.Pack()) == string(other.Pack())
}

func isString(v hujson.Value) bool {
	l, ok := v.Value.(hujson.Literal)
	return ok && l.Kind() == '"'
}

// literals returns the text of each element of a list; see literal.
func literals(list *hujson.Array) []string {
	words := make([]string, 0, len(list.Elements))
	for _, e := range list.Elements {
		words = append(words, literal(e))
	}
	return words
}

// literal returns the text of a JSON string, and "" for any other value.
func literal(v hujson.Value) string {
	if !isString(v) {
		return ""
	}
	return v.Value.(hujson.Literal).String()
}

package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// tomlServers is the name of the table of MCP servers in Codex's config.toml.
const tomlServers = "mcp_servers"

// tomlPart is one key of a server, before and after the installation of the gate. Was is empty if the
// installation has added the key on a new line.
type tomlPart struct {
	At  string `json:"at"` // the key after the installation
	Was string `json:"was,omitempty"`
	Is  string `json:"is"`
}

// tomlGate is the change of one server in a TOML file.
type tomlGate struct {
	file  *tomlFile
	name  string
	entry map[string]any // the server's values after the change
	edits []tomlEdit
	parts []tomlPart
}

// serversOf returns the table of MCP servers from the values of a file, or nil if there is none.
func serversOf(values map[string]any) map[string]any {
	servers, _ := values[tomlServers].(map[string]any)
	return servers
}

// gateTOML is GateServers for a TOML file.
func gateTOML(change *Change, o InstallOptions, validName func(string) error) (gated []GatedServer, alone []string, err error) {
	f, err := parseTOML(change.Path, change.Before)
	if err != nil {
		return nil, nil, err
	}
	servers := serversOf(f.values)
	if len(servers) == 0 {
		return nil, nil, fmt.Errorf("%s lists no MCP servers under %s: name the client's file with --settings, or put nod mcp gate before each server yourself", change.Path, tomlServers)
	}
	var edits []tomlEdit
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		entry, ok := servers[name].(map[string]any)
		if !ok {
			alone = append(alone, name+" (it is not a table)")
			continue
		}
		g := &tomlGate{file: f, name: name, entry: maps.Clone(entry)}
		if left := g.gate(o, validName); left != "" {
			alone = append(alone, name+" ("+left+")")
			continue
		}
		if len(g.edits) > 0 {
			servers[name], edits = g.entry, append(edits, g.edits...)
			gated = append(gated, g.record())
		}
	}
	change.After = f.edited(edits)
	return gated, alone, sameTOML(change, f.values, nil, "put nod mcp gate before each server yourself")
}

// sameTOML checks that the changed file has the values want. It skips the servers whose earlier bytes
// were restored. The error tells the user to make the change by hand.
func sameTOML(change *Change, want map[string]any, restored []string, byHand string) error {
	var is map[string]any
	err := toml.Unmarshal(change.After, &is)
	for _, name := range restored {
		if now := serversOf(is)[name]; now != nil {
			serversOf(want)[name] = now
		}
	}
	if err != nil || !reflect.DeepEqual(is, want) {
		return fmt.Errorf("the layout of %s cannot be changed safely: %s; nothing was changed", change.Path, byHand)
	}
	return nil
}

// gate plans the edits of one server. If the server stays unchanged, left is the reason. left is "" if
// the server already has nod's gate.
func (g *tomlGate) gate(o InstallOptions, validName func(string) error) (left string) {
	command, _ := g.entry["command"].(string)
	args, argsOK := texts(g.entry["args"])
	if command != "" && g.entry["url"] != nil {
		return bothWays
	}
	if isGated(args) {
		return foreignGate(command, o.Program)
	}
	words := gateWords(o, g.name, validName)
	if _, ok := g.entry["url"]; ok {
		return g.gateURL(o.Program, words)
	}
	at, ok := g.key("command")
	switch {
	case command == "":
		return "no command starts it, and it has no URL"
	case !ok:
		return "its table stands in one line: write it as [" + tomlServers + "." + g.name + "]"
	case !argsOK:
		return "its args are not a list of texts"
	case isOwnServer(command, args, o.Program):
		return "it is nod itself"
	}
	words = append(words, "--", command)
	list, hasArgs := g.key("args")
	if _, inEntry := g.entry["args"]; inEntry != hasArgs {
		return "its args are in a form that nod cannot read"
	}
	if hasArgs {
		text, err := g.file.prepended(list, words)
		if err != nil {
			return "its args are in a form that nod cannot read"
		}
		g.replace(list, "args", text)
	} else {
		g.add(at, "args", tomlList(words))
	}
	g.replace(at, "command", g.file.keyText(at)+tomlText(o.Program))
	g.entry["command"], g.entry["args"] = o.Program, anys(append(words, args...))
	return ""
}

// tomlURLKeys are those keys of a server with a URL that mean the same for a server with a command.
var tomlURLKeys = []string{"url", "http_headers", "bearer_token_env_var", "env_http_headers", "enabled", "required", "startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "enabled_tools", "disabled_tools", "default_tools_approval_mode", "tools"}

// gateURL plans the edits of a server with a URL. The server's headers go into the gate's environment, because
// every user could read them on a command line.
func (g *tomlGate) gateURL(program string, words []string) (left string) {
	upstream, _ := g.entry["url"].(string)
	if left = upstreamProblem(upstream); left != "" {
		return left
	}
	for key := range g.entry {
		if !slices.Contains(tomlURLKeys, key) {
			return "nod mcp gate has no means for its " + key
		}
	}
	at, ok := g.key("url")
	if !ok {
		return "its table stands in one line: write it as [" + tomlServers + "." + g.name + "]"
	}
	words = append(words, "--upstream", upstream)
	if v, ok := g.entry["bearer_token_env_var"]; ok {
		variable, _ := v.(string)
		k, found := g.key("bearer_token_env_var")
		if !found || variable == "" {
			return "its bearer_token_env_var is in a form that nod cannot read"
		}
		words = append(words, "--bearer-env", variable)
		g.replace(k, "env_vars", g.file.renamed(k, "env_vars")+tomlList([]string{variable}))
		g.entry["env_vars"] = []any{variable}
	}
	if v, ok := g.entry["env_http_headers"]; ok {
		k, found := g.key("env_http_headers")
		variables, flags, known := variableHeaders(v)
		if !found || !known || g.entry["env_vars"] != nil {
			return "its env_http_headers are in a form that nod cannot carry"
		}
		words = append(words, flags...)
		g.replace(k, "env_vars", g.file.renamed(k, "env_vars")+tomlList(variables))
		g.entry["env_vars"] = anys(variables)
	}
	if v, ok := g.entry["http_headers"]; ok {
		k, found := g.key("http_headers")
		if !found {
			return "its http_headers have a table of their own: write them as http_headers = { … }"
		}
		lines, err := headerLines(v)
		if err != nil {
			return err.Error()
		}
		g.replace(k, "env", g.file.renamed(k, "env")+"{ "+HeadersVariable+" = "+tomlText(lines)+" }")
		g.entry["env"] = map[string]any{HeadersVariable: lines}
	}
	g.replace(at, "command", g.file.renamed(at, "command")+tomlText(program))
	g.add(at, "args", tomlList(words))
	for _, key := range []string{"url", "bearer_token_env_var", "env_http_headers", "http_headers"} {
		delete(g.entry, key)
	}
	g.entry["command"], g.entry["args"] = program, anys(words)
	return ""
}

// variableHeaders returns the environment variables from which the server's headers come, and the flags
// of nod mcp gate for these headers.
func variableHeaders(v any) (variables, flags []string, ok bool) {
	headers, ok := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		variable, isText := headers[name].(string)
		if !isText || variable == "" || !headerName.MatchString(name) || strings.ContainsAny(variable, ",=") {
			return nil, nil, false
		}
		variables, flags = append(variables, variable), append(flags, "--header-env", name+"="+variable)
	}
	return variables, flags, ok && len(headers) > 0
}

func (g *tomlGate) key(name string) (tomlKey, bool) { return g.file.find(tomlServers, g.name, name) }

// replace plans to replace the key k and its value by text. at is the key in text.
func (g *tomlGate) replace(k tomlKey, at, text string) {
	g.edits = append(g.edits, tomlEdit{k.start, k.end, text})
	g.parts = append(g.parts, tomlPart{at, g.file.of(k), text})
}

// add plans to add a key and its value on a new line after the key after.
func (g *tomlGate) add(after tomlKey, name, value string) {
	f := g.file
	text := f.renamed(after, name) + value
	indent, newline := string(f.text[after.line:after.start]), f.newline()
	if ends := bytes.HasSuffix(f.text[:after.next], []byte("\n")); ends {
		g.edits = append(g.edits, tomlEdit{after.next, after.next, indent + text + newline})
	} else {
		g.edits = append(g.edits, tomlEdit{after.next, after.next, newline + indent + text})
	}
	g.parts = append(g.parts, tomlPart{At: name, Is: text})
}

func (g *tomlGate) record() GatedServer {
	was, is := map[string]string{}, map[string]string{}
	for _, p := range g.parts {
		was[p.At], is[p.At] = p.Was, p.Is
	}
	return GatedServer{tomlServers, g.name, jsonText(was), jsonText(is)}
}

func jsonText(m map[string]string) string {
	out, _ := json.Marshal(m) // texts can always be encoded
	return string(out)
}

// ungateTOML is UngateServers for a TOML file.
func ungateTOML(change *Change, known []GatedServer) error {
	f, err := parseTOML(change.Path, change.Before)
	if err != nil {
		return err
	}
	servers := serversOf(f.values)
	var edits []tomlEdit
	var restored []string
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		entry, _ := servers[name].(map[string]any)
		command, _ := entry["command"].(string)
		args, _ := texts(entry["args"])
		if !isGated(args) || !isNamedNod(command) {
			continue
		}
		g := &tomlGate{file: f, name: name, entry: maps.Clone(entry)}
		if g.restore(known) {
			restored = append(restored, name)
		} else if err := g.ungate(args); err != nil {
			return fmt.Errorf("%s: the server %s was edited since the installation: write its own url or command again in place of nod mcp gate; nothing was changed", change.Path, name)
		}
		servers[name], edits = g.entry, append(edits, g.edits...)
	}
	change.After = f.edited(edits)
	return sameTOML(change, f.values, restored, "take nod mcp gate out of each server yourself")
}

// restore plans to restore the earlier bytes of a server. It returns false if somebody has edited the
// server after the installation, or if there is no record of the installation.
func (g *tomlGate) restore(known []GatedServer) bool {
	i := slices.IndexFunc(known, func(s GatedServer) bool { return s.List == tomlServers && s.Name == g.name })
	if i < 0 {
		return false
	}
	var was, is map[string]string
	if json.Unmarshal([]byte(known[i].Was), &was) != nil || json.Unmarshal([]byte(known[i].Is), &is) != nil {
		return false
	}
	var edits []tomlEdit
	for at, text := range is {
		k, ok := g.key(at)
		if !ok || g.file.of(k) != text {
			return false
		}
		if was[at] == "" {
			edits = append(edits, g.file.removal(k))
		} else {
			edits = append(edits, tomlEdit{k.start, k.end, was[at]})
		}
	}
	g.edits = edits
	return true
}

// ungate plans to remove only the gate from a server that has a command.
func (g *tomlGate) ungate(args []string) error {
	at, ok := g.key("command")
	list, okList := g.key("args")
	sep := slices.Index(args, "--")
	if !ok || !okList || sep < 0 || sep+1 >= len(args) {
		return errors.New("it has no command of its own")
	}
	places, err := g.file.elements(list)
	if err != nil || len(places) != len(args) {
		return errTOMLShape
	}
	end := places[len(places)-1][1]
	if sep+2 < len(places) {
		end = places[sep+2][0]
	} else if rest := bytes.TrimLeft(g.file.text[end:], " \t\r\n"); bytes.HasPrefix(rest, []byte(",")) {
		end = len(g.file.text) - len(rest) + 1
	}
	g.edits = []tomlEdit{{places[0][0], end, ""}, {at.value, at.end, tomlText(args[sep+1])}}
	g.entry["command"], g.entry["args"] = args[sep+1], anys(args[sep+2:])
	return nil
}

package hook

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// HeadersVariable is the environment variable in which nod mcp gate gets the HTTP headers for its server,
// one on each line. They are no arguments, because every user of the machine could read them there.
const HeadersVariable = "NOD_MCP_HEADERS"

const upstreamFlag = "--upstream"

// urlMembers are the names that clients use for a server's URL. plainMembers are the other members that
// mean the same for a server with a command. Any other member, such as one for the client's own login,
// may mean something that the gate cannot do.
var (
	urlMembers   = []string{"url", "httpUrl", "serverUrl"}
	plainMembers = []string{"type", "headers", "description", "disabled", "enabled", "timeout", "trust", "includeTools", "excludeTools", "alwaysAllow", "autoApprove"}
)

// gateURL puts the gate before a server with a URL. If the server stays unchanged, left is the reason.
func (d *document) gateURL(entry *hujson.Object, program string, words []string) (left string, err error) {
	at := -1
	for i, m := range entry.Members {
		switch name := literal(m.Name); {
		case slices.Contains(urlMembers, name) && at < 0:
			at = i
		case !slices.Contains(plainMembers, name):
			return "nod mcp gate has no means for its " + name, nil
		}
	}
	if at < 0 {
		return "no command starts it, and it has no URL", nil
	}
	upstream := literal(entry.Members[at].Value)
	if left := upstreamProblem(upstream); left != "" {
		return left, nil
	}
	kind, hasKind := agents.Member(entry, "type"), agents.Member(entry, "type") >= 0
	if hasKind && !slices.Contains([]string{"http", "streamable-http", "streamableHttp"}, literal(entry.Members[kind].Value)) {
		return "nod mcp gate reaches servers by streamable HTTP alone, and this one has another type", nil
	}
	if !hasKind && literal(entry.Members[at].Name) == "url" && slices.Contains([]string{".gemini", ".qwen"}, filepath.Base(filepath.Dir(d.path))) {
		return "for Gemini CLI and Qwen Code a url without a type is not streamable HTTP: write httpUrl if it is", nil
	}
	if left, err := d.gateHeaders(entry); left != "" || err != nil {
		return left, err
	}
	entry.Members[at].Name.Value = hujson.String("command")
	entry.Members[at].Value.Value = hujson.String(program)
	if hasKind {
		entry.Members[kind].Value.Value = hujson.String("stdio")
	}
	return "", d.addMember(entry, 3, "args", append(words, upstreamFlag, upstream))
}

// gateHeaders moves the headers for a server to the environment of the server's gate.
func (d *document) gateHeaders(entry *hujson.Object) (left string, err error) {
	at := agents.Member(entry, "headers")
	if at < 0 {
		return "", nil
	}
	list, ok := entry.Members[at].Value.Value.(*hujson.Object)
	if !ok {
		return "its headers are not an object", nil
	}
	headers := map[string]any{}
	for _, m := range list.Members {
		if !isString(m.Value) {
			return "its headers are not texts", nil
		}
		headers[literal(m.Name)] = literal(m.Value)
	}
	lines, err := headerLines(headers)
	if err != nil {
		return err.Error(), nil
	}
	v, err := d.render(map[string]string{HeadersVariable: lines}, nil, true)
	if err != nil {
		return "", err
	}
	entry.Members[at].Name.Value = hujson.String("env")
	entry.Members[at].Value.Value = v.Value
	return "", nil
}

// ungateURL restores the URL and the headers of a server whose entry was edited after the installation.
func (d *document) ungateURL(entry *hujson.Object, args *hujson.Array) error {
	at := slices.Index(literals(args), upstreamFlag)
	command := &entry.Members[agents.Member(entry, "command")]
	command.Name.Value, command.Value.Value = hujson.String("url"), hujson.String(literal(args.Elements[at+1]))
	removeMember(entry, agents.Member(entry, "args"))
	if kind := agents.Member(entry, "type"); kind >= 0 {
		entry.Members[kind].Value.Value = hujson.String("http")
	}
	i := agents.Member(entry, "env")
	if i < 0 {
		return nil
	}
	env, ok := entry.Members[i].Value.Value.(*hujson.Object)
	if !ok || len(env.Members) != 1 || literal(env.Members[0].Name) != HeadersVariable {
		return nil // the user's own variables stay
	}
	headers := map[string]string{}
	for line := range strings.Lines(literal(env.Members[0].Value)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		headers[name] = strings.TrimSpace(value)
	}
	v, err := d.render(headers, nil, true)
	if err != nil {
		return err
	}
	entry.Members[i].Name.Value, entry.Members[i].Value.Value = hujson.String("headers"), v.Value
	return nil
}

// upstreamProblem returns the reason why a URL cannot be an argument of the gate, or "".
func upstreamProblem(text string) string {
	u, err := url.Parse(text)
	switch {
	case strings.Contains(text, "$"):
		return "its URL has a variable of the client"
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "its URL is not one of HTTP"
	case u.User != nil || u.RawQuery != "":
		return "its URL has a query or a password, which other users could read on a command line: put the secret into a header"
	}
	return ""
}

var headerName = lazyregexp.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// headerLines returns the value of HeadersVariable for these headers.
func headerLines(v any) (lines string, err error) {
	headers, ok := v.(map[string]any)
	if !ok {
		return "", errors.New("its headers are not a table")
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value, ok := headers[name].(string)
		if !ok || !headerName.MatchString(name) || strings.ContainsAny(value, "\r\n") || strings.TrimSpace(value) != value {
			return "", fmt.Errorf("its header %q cannot be carried", name)
		}
		lines += name + ": " + value + "\n"
	}
	return strings.TrimSuffix(lines, "\n"), nil
}

// upstreams returns the names of those gated servers that have a URL but no headers.
func upstreams(gated []GatedServer) (names []string) {
	for _, s := range gated {
		if strings.Contains(s.Is, upstreamFlag) && !strings.Contains(s.Is, HeadersVariable) && !strings.Contains(s.Is, "--bearer-env") && !strings.Contains(s.Is, "--header-env") {
			names = append(names, s.Name)
		}
	}
	return names
}

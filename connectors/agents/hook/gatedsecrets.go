package hook

import (
	"net/url"
	"slices"

	"github.com/tailscale/hujson"
)

// secretMembers are the members of a server that contain headers or environment variables. Their values
// may be secrets.
var secretMembers = []string{"headers", "http_headers", "env"}

// concealed is shown in place of a secret.
const concealed = `"…"`

// concealServers returns a function for Change.conceal. It hides the secrets of all MCP servers, also of
// those that stay unchanged.
func concealServers(path string) func([]byte) []byte {
	conceal := concealJSON
	if isTOML(path) {
		conceal = concealTOML
	}
	return func(content []byte) []byte {
		shown, err := conceal(path, content)
		if err != nil {
			return []byte("… (" + path + " cannot be shown without its secrets)\n")
		}
		return shown
	}
}

func concealJSON(path string, content []byte) ([]byte, error) {
	doc, err := parseJSONC(path, content)
	if err != nil {
		return nil, err
	}
	err = doc.eachServer(func(_, _ string, value *hujson.Value) error {
		entry, _ := value.Value.(*hujson.Object)
		if entry == nil {
			return nil
		}
		for i := range entry.Members {
			m := &entry.Members[i]
			if name := literal(m.Name); slices.Contains(secretMembers, name) || slices.Contains(urlMembers, name) && hasURLSecret(literal(m.Value)) {
				m.Value.Value = hujson.Literal(concealed)
			}
		}
		return nil
	})
	return doc.bytes(), err
}

func concealTOML(path string, content []byte) ([]byte, error) {
	f, err := parseTOML(path, content)
	if err != nil {
		return nil, err
	}
	servers := serversOf(f.values)
	var edits []tomlEdit
	for _, k := range f.keys {
		secret := slices.ContainsFunc(k.path, func(name string) bool { return slices.Contains(secretMembers, name) })
		if k.path[0] == tomlServers && len(k.path) < 3 { // a table on one line may contain headers
			secret = true
		} else if k.path[0] == tomlServers && k.path[2] == "url" {
			server, _ := servers[k.path[1]].(map[string]any)
			upstream, _ := server["url"].(string)
			secret = hasURLSecret(upstream)
		}
		if secret {
			edits = append(edits, tomlEdit{k.value, k.end, concealed})
		}
	}
	return f.edited(edits), nil
}

// hasURLSecret reports whether a text may be a URL that contains a secret. It returns true for a text
// that is no URL.
func hasURLSecret(text string) bool {
	u, err := url.Parse(text)
	return err != nil || u.User != nil || u.RawQuery != ""
}

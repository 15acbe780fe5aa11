package policy

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// NotImported is a rule that could not be taken over, and why.
type NotImported struct {
	List string `json:"list"` // allow, ask or deny
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// ImportClaudeCode takes the rules of a Claude Code settings file over. A rule
// that nod cannot read, or that allows what nod would not bound, is left out
// and named. It fails where settings is no such file.
func ImportClaudeCode(settings []byte) (schemas.Permissions, []NotImported, error) {
	var file struct {
		Permissions struct {
			Allow, Ask, Deny      []string
			DefaultMode           string   `json:"defaultMode"`
			AdditionalDirectories []string `json:"additionalDirectories"`
		} `json:"permissions"`
	}
	var out schemas.Permissions
	if err := json.Unmarshal(settings, &file); err != nil {
		return out, nil, fmt.Errorf("read Claude Code's settings: %w", err)
	}
	var left []NotImported
	take := func(list string, rules []string, into *[]string) {
		for _, text := range rules {
			text = strings.TrimSpace(text)
			why := ""
			r, err := parseRule(text)
			if err != nil {
				why = strings.TrimPrefix(err.Error(), fmt.Sprintf("%q: ", text))
			} else if list == "allow" {
				why = unbounded(&r)
			}
			if why != "" {
				left = append(left, NotImported{list, text, why})
				continue
			}
			*into = append(*into, text)
		}
	}
	take("deny", file.Permissions.Deny, &out.Deny)
	take("ask", file.Permissions.Ask, &out.Ask)
	take("allow", file.Permissions.Allow, &out.Allow)
	if m := file.Permissions.DefaultMode; m != "" && m != "default" {
		left = append(left, NotImported{"defaultMode", m, "nod has presets instead: see nod policy presets"})
	}
	for _, d := range file.Permissions.AdditionalDirectories {
		left = append(left, NotImported{"additionalDirectories", d, "nod asks for edits outside the project: write a rule such as Edit(/" + d + "/**)"})
	}
	return out, left, nil
}

// unbounded says why an allow rule would allow anything at all; "" if it has
// bounds.
func unbounded(r *rule) string {
	if _, pattern, _ := strings.Cut(r.text, "("); canonical(r.tool).kind != kindShell {
		if r.root == 'p' && strings.HasPrefix(pattern, "/") {
			return "there it starts at the directory of the settings file, here at every project: write it as //abs/path or ./path"
		}
		return ""
	}
	switch {
	case r.argv == nil:
		return "it allows every command"
	case r.prefix && (interpreters[base(r.argv[0])] || inlineCode[base(r.argv[0])] != "" || wrappers[base(r.argv[0])] || runsOthers[base(r.argv[0])]) && len(r.argv) == 1:
		return "with it, any other command can be run"
	case base(r.argv[0]) == "nod":
		return "agents may not run nod commands that decide, grant or configure"
	}
	return ""
}

// runsOthers are programs that a flag, or a command of their own, makes run any
// other one.
var runsOthers = set("git awk gawk mawk nawk sed tar vi vim nvim view ed emacs less more man docker podman kubectl gdb lldb tmux screen make ninja cmake rsync scp sftp socat nc ncat go cargo npm pnpm yarn bun uv uvx bunx pipx pip gem bundle rake gradle mvn dotnet swift zip split sort tclsh expect java erl iex rg fd")

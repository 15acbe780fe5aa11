package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints a completion script for a shell. The script contains the commands and flags of this
// version, and runs nod pending to complete the ids of requests.
func (c *completionCmd) Run(e *env, app *kong.Kong) error {
	words := completions(app.Model.Node)
	switch c.Shell {
	case "fish":
		fmt.Fprint(e.stdout, fishScript(words))
	case "zsh":
		fmt.Fprintf(e.stdout, "#compdef nod\nautoload -U +X bashcompinit && bashcompinit\n%s", bashScript(words))
	default:
		fmt.Fprint(e.stdout, bashScript(words))
	}
	return nil
}

// A completion is a command's path, such as "settings apply", with the words that may follow the path.
type completion struct {
	path  string
	words []string
	help  []string // help[i] describes words[i]
	ids   bool     // the id of a request may also follow the path
}

// takeIDs are the commands whose first argument is the id of a request.
var takeIDs = map[string]bool{"show": true, "allow": true, "deny": true, "answer": true}

// completions returns the completions of a command and of all its subcommands.
func completions(n *kong.Node) []completion {
	c := completion{path: strings.TrimPrefix(strings.TrimPrefix(n.FullPath(), "nod"), " "), ids: takeIDs[n.Name]}
	var below []completion
	for _, child := range n.Children {
		if !child.Hidden && child.Type == kong.CommandNode {
			c.words, c.help = append(c.words, child.Name), append(c.help, child.Help)
			below = append(below, completions(child)...)
		}
	}
	for _, f := range n.Flags {
		if !f.Hidden {
			c.words, c.help = append(c.words, "--"+f.Name), append(c.help, f.Help)
		}
	}
	return append([]completion{c}, below...)
}

func bashScript(all []completion) string {
	var b strings.Builder
	b.WriteString("_nod() {\n  local path='' words='' word i\n  for ((i = 1; i < COMP_CWORD; i++)); do\n    word=${COMP_WORDS[i]}\n    case \"$word\" in -*) continue ;; esac\n    case \"$path $word\" in\n")
	for _, c := range all[1:] {
		fmt.Fprintf(&b, "      ' %s') path=' %s' ;;\n", c.path, c.path)
	}
	b.WriteString("    esac\n  done\n  case \"$path\" in\n")
	for _, c := range all {
		path, ids := " "+c.path, ""
		if c.path == "" {
			path = ""
		}
		if c.ids {
			ids = " $(nod pending --ids 2>/dev/null)"
		}
		fmt.Fprintf(&b, "    '%s') words=\"%s%s\" ;;\n", path, strings.Join(c.words, " "), ids)
	}
	b.WriteString("  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\ncomplete -o default -F _nod nod\n")
	return b.String()
}

func fishScript(all []completion) string {
	var b strings.Builder
	b.WriteString("complete -c nod -f\n")
	for _, c := range all {
		at := "__fish_use_subcommand"
		if c.path != "" {
			at = "__fish_seen_subcommand_from " + c.path[strings.LastIndexByte(c.path, ' ')+1:]
		}
		for i, word := range c.words {
			kind := "-a " + word
			if flag, ok := strings.CutPrefix(word, "--"); ok {
				kind = "-l " + flag
			}
			fmt.Fprintf(&b, "complete -c nod -n '%s' %s -d '%s'\n", at, kind, strings.ReplaceAll(c.help[i], "'", `\'`))
		}
		if c.ids {
			fmt.Fprintf(&b, "complete -c nod -n '%s' -a '(nod pending --ids 2>/dev/null)'\n", at)
		}
	}
	return b.String()
}

package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nodbus/nod/actors/policy/contained"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
)

// Containment describes a contained run of a command line: its directory, and the project that it may write.
type Containment struct {
	Line     string `json:"line"`                // the command line as the agent wrote it
	Dir      string `json:"dir"`                 // the clean, absolute directory in which the line runs
	Project  string `json:"project"`             // the directory that the line may write
	ReadOnly bool   `json:"read_only,omitempty"` // the line must not write even the project

	needs []contained.Need
}

// Program is the nod program that starts contained commands.
type Program = contained.Program

// containedRule is the value of Verdict.Rule if the call runs contained, or if it would run contained after a
// person grants the missing permissions.
const containedRule = "default contained"

// contain sets the verdict on a command line that no rule decides. If the line lacks no permission, it runs
// contained. Otherwise a person is asked for exactly the missing permissions.
func (ev *evaluation) contain(src string) {
	c, why := ev.containment(src)
	switch {
	case c == nil && why != "":
		ev.verdict.Why = why
	case c == nil:
	case len(c.needs) > 0:
		ev.verdict.Containment, ev.verdict.Rule, ev.verdict.Why = c, containedRule, c.lack(c.needs)
	default:
		ev.verdict.Effect, ev.verdict.Containment, ev.verdict.Rule, ev.verdict.Why = Contain, c, containedRule, ""
	}
}

// containHarmless adds a Containment to the verdict Allow on a harmless line, so that a host that can change
// the call may run the line contained. Contained, the line may write nothing, not even its project. If the
// host cannot change the call, the line runs uncontained.
func (ev *evaluation) containHarmless(src string) {
	if c, _ := ev.containment(src); c != nil && len(c.needs) == 0 {
		c.ReadOnly = true
		ev.verdict.Containment = c
	}
}

// containment returns the Containment in which a line may run. If the line must not run contained, the
// Containment is nil, and the text is the reason.
func (ev *evaluation) containment(src string) (*Containment, string) {
	if ev.pol.contained == nil || ev.tool.Name != "Bash" {
		return nil, ""
	}
	if ev.call.Project == "" {
		return nil, "nod does not know the project's directory, so the call cannot run contained"
	}
	loc := *ev.location
	loc.Links, loc.Looked = nil, nil // links do not matter here, because a container hides a secret from every path, even one through a link
	j := ev.pol.contained.Line(src, loc)
	switch {
	case j.Why != "":
		return nil, "may not run contained: " + j.Why
	case j.ChangesDir:
		return nil, ""
	}
	return &Containment{Line: src, Dir: ev.location.Dirs[0], Project: j.Project, needs: j.Needs}, ""
}

// lack describes missing permissions for people: for each command of the line, the permissions it needs.
func (c *Containment) lack(needs []contained.Need) string {
	byCommand := map[string][]string{}
	var order []string
	for _, n := range needs {
		if byCommand[n.Command] == nil {
			order = append(order, n.Command)
		}
		byCommand[n.Command] = append(byCommand[n.Command], n.Permission)
	}
	parts := make([]string, len(order))
	for i, name := range order {
		parts[i] = fmt.Sprintf("`%s` needs %s", name, strings.Join(byCommand[name], " and "))
	}
	return strings.Join(parts, "; ")
}

// Needs returns the permissions that the line needs besides access to its project.
func (c *Containment) Needs() []Permission {
	var perms []Permission
	for _, n := range c.needs {
		if p, err := ParsePermission(n.Permission); err == nil {
			perms = append(perms, p)
		}
	}
	return perms
}

// Runs reports whether a tool input has exactly the line and the directory of c, so that RunInput can be used.
func (c *Containment) Runs(input json.RawMessage) bool {
	in, err := tools.ReadInput(input)
	if err != nil {
		return false
	}
	src, dir, why := in.Command()
	return src == c.Line && why == "" && (dir == "" || pathname.Clean(dir) == c.Dir)
}

// Words returns the words of the command that runs in the container.
func (c *Containment) Words() []string { return contained.Words(c.Line) }

// RunInput returns the input of a shell tool with the command line replaced. The new line starts the nod
// program that the argument by describes. This program asks the engine for the decision with the given key,
// and then runs the original line contained. The slice words has the words of the contained command. ok is
// false if the input has no single text field for the command, if a path in by is not clean and absolute, or
// if CheckServers refuses the server addresses in by.
func RunInput(input json.RawMessage, by Program, key string) (changed json.RawMessage, words []string, ok bool) {
	in, err := tools.ReadInput(input)
	if err != nil || !usable(by.Path) || by.Data != "" && !usable(by.Data) || by.Creds != "" && !usable(by.Creds) || CheckServers(by.URL) != nil {
		return nil, nil, false
	}
	src, _, why := in.Command()
	field := ""
	for _, name := range []string{"command", "cmd"} {
		if s, isText := in.Text(name); isText && s == src {
			field = cmp.Or(field, name)
		}
	}
	if why != "" || src == "" || field == "" {
		return nil, nil, false
	}
	if in[field], err = schemas.Encode(contained.RunLine(by, key, src)); err != nil {
		return nil, nil, false
	}
	changed, err = json.Marshal(in)
	return changed, contained.Words(src), err == nil
}

// usable reports whether the path p is safe to write into a command line.
func usable(p string) bool { return CheckPath(p) == nil && pathname.Clean(p) == p }

// CheckServers returns an error if a command line must not contain the addresses of these NATS servers. A
// command line is stored, and other programs can read it, so it must not contain a password or a token.
func CheckServers(urls string) error {
	switch {
	case strings.ContainsAny(urls, "@?#"):
		return errors.New("the address of nod's servers may hold a password: name a key file instead")
	case len(urls) > schemas.MaxPath || !utf8.ValidString(urls) || strings.ContainsFunc(urls, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }):
		return errors.New("the address of nod's servers is too long, or has characters that an address must not have")
	}
	return nil
}

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

// Containment describes how a command line may run contained. The kernel limits the process to
// these directories and permissions.
type Containment struct {
	Line     string `json:"line"`                // the command line as the agent wrote it
	Dir      string `json:"dir"`                 // the clean, absolute directory in which the line runs
	Project  string `json:"project"`             // the directory that the line may write
	ReadOnly bool   `json:"read_only,omitempty"` // the line must not write even the project

	needs []contained.Need
}

// Program is the nod program that starts contained commands.
type Program = contained.Program

// containedRule is the Rule of a verdict on a call that runs contained, or that would run contained
// if a person granted a permission.
const containedRule = "default contained"

// contain sets the verdict on a command line that no rule decides. The line runs contained, or a
// person is asked for exactly the missing permissions.
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

// containHarmless notes in a verdict Allow that the harmless line may also run contained. The line then
// must not write even the project. If the host cannot change the call, the line runs uncontained.
func (ev *evaluation) containHarmless(src string) {
	if c, _ := ev.containment(src); c != nil && len(c.needs) == 0 {
		c.ReadOnly = true
		ev.verdict.Containment = c
	}
}

// containment returns the Containment in which a line may run. If the line may not run contained,
// it returns nil and the reason.
func (ev *evaluation) containment(src string) (*Containment, string) {
	if ev.pol.contained == nil || ev.tool.Name != "Bash" {
		return nil, ""
	}
	if ev.call.Project == "" {
		return nil, "nod does not know the project's directory, so the call cannot run contained"
	}
	loc := *ev.location
	loc.Links, loc.Looked = nil, nil // links do not matter, because a container hides a secret even from a path through a link
	j := ev.pol.contained.Line(src, loc)
	switch {
	case j.Why != "":
		return nil, "may not run contained: " + j.Why
	case j.ChangesDir:
		return nil, ""
	}
	return &Containment{Line: src, Dir: ev.location.Dirs[0], Project: j.Project, needs: j.Needs}, ""
}

// lack describes, for people, the permissions that a line needs and does not have.
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

// Runs reports whether RunInput can change the tool input so that it runs the line of c contained.
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

// RunInput returns a shell tool's input with a new command line. The new line starts the nod program that by
// describes. The program asks the engine for the decision with this key, and then runs the original line
// contained. The slice words has the words of the command that runs contained. ok is false if the input has
// no single text field for the command, if a path of by is not clean and absolute, or if CheckServers refuses
// the servers of by.
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

// usable reports whether a command line may contain the path p.
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

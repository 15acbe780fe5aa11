package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// typist is a person who answers one question by commands. The commands run without a terminal, so they ask
// for no confirmation.
type typist struct {
	*rig.Env
	id    string
	read  string // the output of all commands until now
	typed string // the flags of the last command, except --rule
}

// nod allow creates a standing answer only if an earlier command printed the rule and --rule names it.
func TestAStandingAnswerByCommandNeedsItsRuleShown(t *testing.T) {
	t.Parallel()
	if !*rig.Long {
		t.Skip("left out: each sequence of commands takes several processes; -long runs it, as in .ci/run")
	}
	env := rig.Start(t, rig.AtTheTerminal(t))
	ada := env.Agent("ada")
	peopletest.NothingLastsUnseen(t, 2, peopletest.Lasts{Rules: true}, func(n int) peopletest.Person {
		id := fmt.Sprint("unseen", n)
		r := rig.Shell(fmt.Sprint("S", n), id, "go test ./bus") // each request has its own session, so that no other standing answer covers it
		r.Options = append(schemas.DefaultOptions(), schemas.Option{OptionID: "always", Name: "Always", Kind: schemas.AllowAlways})
		ada.Asks(r)
		return &typist{Env: env, id: id}
	})
}

func (p *typist) Sees() string { return strings.ReplaceAll(p.read, p.id, "") }

// named finds, in a command's output, the rules that the next command must name.
var named = regexp.MustCompile(`--rule '([^']+)'`)

func (p *typist) May() (all []peopletest.Pressable) {
	commands := []string{"show"}
	for _, lasts := range []string{"--scope session", "--for 30m", "--for 1d --rule 2"} {
		commands = append(commands, lasts, lasts+" --yes", lasts+" --yes --rule 1")
	}
	for _, rule := range named.FindAllStringSubmatch(p.read, -1) { // the commands that the output suggests
		commands = append(commands, p.typed+" --yes --rule "+rule[1])
	}
	for _, c := range commands {
		all = append(all, peopletest.Pressable{Label: c})
	}
	return all
}

func (p *typist) Press(label string) {
	flags, rule, _ := strings.Cut(label, " --rule ")
	p.typed = flags
	args := append([]string{"allow", p.id}, strings.Fields(flags)...)
	if rule != "" {
		args = append(args, "--rule", rule)
	}
	if label == "show" {
		args = []string{"show", p.id}
	}
	r := p.Nod(args...)
	p.read += r.Stdout + r.Err
}

func (p *typist) Offered() []schemas.Reach {
	return p.Stored("S" + strings.TrimPrefix(p.id, "unseen") + "." + p.id).Record.Remember
}

func (p *typist) Said() *schemas.Answer {
	rec := p.Stored("S" + strings.TrimPrefix(p.id, "unseen") + "." + p.id).Record
	if rec.Decision == nil {
		return nil
	}
	a := schemas.Answer{OptionID: rec.Decision.OptionID, Scope: rec.Decision.Scope}
	if g := rec.Decision.Grant; g != nil {
		a.Reach = slices.IndexFunc(rec.Remember, func(r schemas.Reach) bool {
			return slices.EqualFunc(r.Rules, g.Rules, func(x, y schemas.RememberedRule) bool { return x.String() == y.String() })
		})
		if !g.ExpiresAt.IsZero() {
			a.ForSeconds = int(g.ExpiresAt.Sub(g.CreatedAt).Seconds())
		}
	}
	return &a
}

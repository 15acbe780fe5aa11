package people

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// Choice returns the label of one of the answers to r, which is an agent's question.
func Choice(r *schemas.Request, o schemas.Option) string {
	_, plan := r.Plan()
	switch {
	case o.Text:
		return Line(o.Name) + " (in your own words)"
	case o.Kind.Remembered():
		return Line(o.Name) + " (and the agent remembers it)"
	case !o.Kind.Allows() && !plan:
		return Line(o.Name) + " (gives no answer)"
	}
	return Line(o.Name)
}

// answers returns a line for each option, with the option's effect and the agent's name for the option. It
// leaves out the two plain answers that every channel offers, if the agent gives them their usual names.
func answers(r *schemas.Request) []string {
	options := r.Offered()
	var all []string
	if r.Kind == schemas.KindQuestion {
		meanings := meaningsOf(r)
		for i, o := range options {
			all = append(all, fmt.Sprintf("%d: %s", i+1, Choice(r, o)))
			if text := meanings[o.Name]; text != "" {
				all = append(all, "   – "+Line(text))
			}
		}
		return all
	}
	for i, o := range options {
		what := orElse(OptionWords(r, o), "of a kind that nod does not know, allows nothing")
		if usual := plainAnswers[o.Name]; usual != "" && what == usual {
			continue
		}
		if o.Kind.Remembered() { // a narrow button shows the option's number instead of its name
			what += fmt.Sprintf(", %d", i+1)
		}
		all = append(all, fmt.Sprintf("%s: %s", what, Line(o.Name)))
	}
	if slices.ContainsFunc(options, func(o schemas.Option) bool { return o.Kind.Remembered() }) {
		all = append(all, AgentRemembers)
	}
	return all
}

// plainAnswers contains the names that nod and most agents give to the two plain answers (allow
// once and deny once), with their effects.
var plainAnswers = map[string]string{"Allow once": "allow once", "Reject": "deny"}

// meaningsOf returns the agent's explanation of each answer to the agent's question, by the answer's
// name. It reads the field "answers" of the input.
func meaningsOf(r *schemas.Request) map[string]string {
	var details struct {
		Answers []struct{ Answer, Meaning string }
	}
	if json.Unmarshal(r.ActionDetails, &details) != nil {
		return nil // an agent need not explain the answers to its question, so this is no error; other parts show the whole input
	}
	all := map[string]string{}
	for _, a := range details.Answers {
		all[a.Answer] = a.Meaning
	}
	return all
}

// standingRules returns a line for each rule that a lasting allow can store. The line contains the
// number by which a person chooses the rule.
func standingRules(p *schemas.Prompt) []string {
	if p.Request.Kind == schemas.KindPermission {
		return nil // every allow of a permission lasts, so there is no rule to choose
	}
	var all []string
	for i := range p.Remember {
		r := &p.Remember[i]
		all = append(all, fmt.Sprintf("%s, %d: %s", strings.ToLower(RuleHead(r)), i+1, Line(r.String())))
	}
	return all
}

// WithoutAnswers returns the lines of the part Answers without the lines that name an answer. It is for a
// channel that lists the answers itself, with its own keys.
func WithoutAnswers(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(line string) bool {
		return line != AgentRemembers && !strings.HasPrefix(line, needed)
	})
}

// needed is the beginning of each line with a condition for an allow, such as the code word.
const needed = "needed to allow: "

func allowRequirements(p *schemas.Prompt) []string {
	var all []string
	for _, t := range p.Conditions {
		all = append(all, needed+Line(t))
	}
	return all
}

package policy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/weburl"
)

// inputField is a text in the input of a tool, with the name of the field that holds it.
type inputField struct{ name, text string }

// fieldsOf returns the texts of an input at any depth, in the order of their fields' names. If the input has
// more than maxInputTexts, the rest is missing.
func fieldsOf(input []byte) (all []inputField) {
	var whole any
	if json.Unmarshal(input, &whole) != nil {
		return nil // nod asks about such an input in any case
	}
	collectFields("", whole, &all)
	return all
}

func collectFields(name string, v any, all *[]inputField) {
	switch v := v.(type) {
	case string:
		if len(*all) < maxInputTexts {
			*all = append(*all, inputField{name, v})
		}
	case []any:
		for _, one := range v {
			collectFields(name, one, all)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			collectFields(key, v[key], all)
		}
	}
}

// judgeInput raises the risk of a call of a tool that nod does not know by what its input holds.
func (ev *evaluation) judgeInput() {
	for _, f := range fieldsOf(ev.call.Input) {
		if text := strings.TrimSpace(f.text); strings.Contains(text, "://") && !strings.ContainsAny(text, " \t\n") {
			ev.addFaults(weburl.OfWord(text, false))
		}
	}
}

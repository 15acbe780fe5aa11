package people

import (
	"fmt"

	"github.com/nodbus/nod/schemas"
)

// AgentRemembers is a warning. People read it before they choose an option that the agent itself
// applies to later calls.
const AgentRemembers = "what the agent remembers is its own: nod cannot say what it covers, nor revoke it"

// OptionWords describes an option's effect, such as "allow once", and reports whether the effect
// lasts. For an unknown kind of option it returns "".
func OptionWords(r *schemas.Request, o schemas.Option) string {
	words, known := map[schemas.OptionKind]string{
		schemas.AllowOnce:    "allow once",
		schemas.AllowAlways:  "allow",
		schemas.RejectOnce:   "deny",
		schemas.RejectAlways: "deny",
	}[o.Kind]
	if !known {
		return ""
	}
	if r.Kind == schemas.KindPermission && o.Kind.Allows() { // an allowed permission lasts longer than the request
		words = "allow, in this session until it is revoked"
	}
	if o.Kind.Remembered() {
		words += ", and the agent remembers it"
	}
	return words
}

// OptionText returns the effect of option i and its name.
func OptionText(p *schemas.Prompt, i int) string {
	o := p.Request.Options[i]
	return OptionWords(&p.Request, o) + ": " + Line(o.Name)
}

// OptionLabel returns the label of the button for option i. If the agent remembers the option and its
// name is too long for maxLabel UTF-16 units, the label contains the option's number in the message.
// Labels of other options may be longer than maxLabel.
func OptionLabel(p *schemas.Prompt, i, maxLabel int) string {
	o := p.Request.Options[i]
	if !o.Kind.Remembered() {
		return OptionText(p, i)
	}
	mark := "⛔ Deny"
	if o.Kind.Allows() {
		mark = "✅ Allow"
	}
	text := fmt.Sprintf("%s, agent remembers %d: %s", mark, i+1, Line(o.Name))
	if UTF16(text) > maxLabel {
		text = fmt.Sprintf("%s, agent remembers %d …", mark, i+1)
	}
	return text
}

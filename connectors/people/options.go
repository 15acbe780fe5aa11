package people

import "github.com/nodbus/nod/schemas"

// AgentRemembers is the warning that people read before they choose an option that the
// agent itself applies to later calls.
const AgentRemembers = "what the agent remembers is its own: nod cannot say what it covers, nor revoke it"

// OptionWords returns an option's effect in nod's words, such as "allow once", and whether
// the effect lasts. It returns "" for an option kind that nod does not know.
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
	if r.Kind == schemas.KindPermission && o.Kind.Allows() { // a permission lasts beyond the request
		words = "allow, in this session until it is revoked"
	}
	if o.Kind.Remembered() {
		words += ", and the agent remembers it"
	}
	return words
}

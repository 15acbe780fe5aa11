package people

import "github.com/nodbus/nod/schemas"

// AgentRemembers is a warning. It is shown before a person chooses an option that the
// agent itself keeps for later calls.
const AgentRemembers = "what the agent remembers is its own: nod cannot say what it covers, nor revoke it"

// OptionWords returns an option's effect in nod's words, such as "allow once". The words
// include whether the effect lasts. They are empty for an option kind that nod does not
// know.
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
	if r.Kind == schemas.KindPermission && o.Kind.Allows() { // the request is to hold the permission
		words = "allow, in this session until it is revoked"
	}
	if o.Kind.Remembered() {
		words += ", and the agent remembers it"
	}
	return words
}

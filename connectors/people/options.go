package people

import "github.com/nodbus/nod/schemas"

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

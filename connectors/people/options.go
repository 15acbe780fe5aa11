package people

import "github.com/nodbus/nod/schemas"

// AgentRemembers is what a person reads before they choose an option that the agent
// keeps for later calls by itself.
const AgentRemembers = "what the agent remembers is its own: nod cannot say what it covers, nor revoke it"

// OptionWords is what an option does, in nod's words: "allow once". What lasts says
// so. It is empty for a kind that nod does not know.
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
	if r.Kind == schemas.KindPermission && o.Kind.Allows() { // what is asked for is to hold it
		words = "allow, in this session until it is revoked"
	}
	if o.Kind.Remembered() {
		words += ", and the agent remembers it"
	}
	return words
}

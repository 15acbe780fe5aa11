package doctor

import (
	"fmt"
	"os"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// boundary reports whether an agent's programs can answer the agent's own requests. They can if they
// run as the same user as nod, because that user can read the keys that answer.
func boundary(o Options, s *schemas.Settings, open bool) []Finding {
	const check = "boundary"
	switch {
	case open:
		return []Finding{wrong(check, "this NATS server requires no keys, so every program that reaches it can answer", "give it keys: nod keys config; docs/security.md")}
	case o.Place.URL != "" && o.roles()[0].Role == roles.Agent:
		return []Finding{ok(check, "nod runs elsewhere, and the key here can only ask")}
	case o.Place.URL != "":
		return []Finding{note(check, "nod runs elsewhere, but the key here can do more than ask, for every program of this user", "where agents run, keep an agent's key alone (docs/security.md)")}
	case ownedByAnother(o.DataDir):
		return []Finding{ok(check, "nod runs as another user, whose keys the programs of this one cannot read")}
	}
	what := fmt.Sprintf("nothing separates nod from your own programs: any of them can read the keys in %s, and answer", o.DataDir)
	do := "docs/security.md: run nod under a user of its own, or have risky requests answered on a second device (approvers.require, permissions.confirm)"
	if s != nil {
		for _, c := range s.Confirms() {
			if c.SecondDevice {
				return []Finding{note(check, what+"; requests of "+string(c.Risk)+" risk or above need a second device", "docs/security.md explains the limits of that")}
			}
		}
	}
	return []Finding{note(check, what, do)}
}

func ownedByAnother(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	owner, known := ownerOf(info)
	return known && owner != os.Getuid()
}

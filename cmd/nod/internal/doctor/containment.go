package doctor

import (
	"fmt"

	"github.com/nodbus/nod/connectors/agents/contain"
)

// containment reports whether this machine can run contained commands, which it tests by running one.
func containment() []Finding {
	const check, do = "containment", "docs/containment.md lists what each level needs"
	switch level, err := contain.Support(); level {
	case contain.Namespaces:
		return []Finding{ok(check, "nod exec --contain can hold commands in namespaces of their own")}
	case contain.LandlockAlone:
		return []Finding{note(check, fmt.Sprintf("this machine allows no namespaces (%s), so nod exec --contain runs only with --allow-landlock-alone", err), do)}
	default:
		return []Finding{note(check, fmt.Sprintf("this machine cannot contain commands: %s", err), do)}
	}
}

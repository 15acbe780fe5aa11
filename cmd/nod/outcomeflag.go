package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// outcomeFlag is an outcome in a flag. A user may write the outcome as nod's messages name it, or as people
// see it.
type outcomeFlag schemas.Outcome

var outcomes = []string{string(schemas.Allowed), string(schemas.Denied), string(schemas.Cancelled), string(schemas.TimedOut), string(schemas.Withdrawn)}

// UnmarshalText returns an error for an unknown outcome.
func (o *outcomeFlag) UnmarshalText(text []byte) error {
	switch *o = outcomeFlag(text); *o {
	case "expired":
		*o = outcomeFlag(schemas.TimedOut)
	case "dismissed":
		*o = outcomeFlag(schemas.Cancelled)
	}
	if !slices.Contains(outcomes, string(*o)) {
		return fmt.Errorf("must be one of %s, and not %q", strings.Join(outcomes, ", "), text)
	}
	return nil
}

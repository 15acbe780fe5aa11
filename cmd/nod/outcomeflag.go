package main

import "github.com/nodbus/nod/schemas"

// outcomeFlag is an outcome as a user names it: by its name in messages or by the word that people see.
type outcomeFlag schemas.Outcome

// UnmarshalText never fails: the flag's enum names the outcomes that there are.
func (o *outcomeFlag) UnmarshalText(text []byte) error {
	switch *o = outcomeFlag(text); *o {
	case "expired":
		*o = outcomeFlag(schemas.TimedOut)
	case "dismissed":
		*o = outcomeFlag(schemas.Cancelled)
	}
	return nil
}

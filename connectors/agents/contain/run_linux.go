package contain

import (
	"context"
	"errors"
)

// Support returns the strongest level that this machine supports, and why no stronger one.
func Support() (Level, error) { return None, errors.New("not built yet") }

// Run runs the command of s contained, and waits for its end. An error means that the command
// did not run; it is an *Error.
func Run(context.Context, Spec) (Report, error) {
	return Report{}, &Error{CodeRefused, errors.New("not built yet")}
}

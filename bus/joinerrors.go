package bus

import (
	"errors"
	"strings"
)

// JoinErrors is errors.Join with an error text of one line.
func JoinErrors(errs ...error) error {
	err := errors.Join(errs...)
	if err == nil || !strings.Contains(err.Error(), "\n") {
		return err
	}
	return oneLineError{err}
}

type oneLineError struct{ err error }

func (e oneLineError) Error() string { return strings.ReplaceAll(e.err.Error(), "\n", "; ") }

func (e oneLineError) Unwrap() error { return e.err }

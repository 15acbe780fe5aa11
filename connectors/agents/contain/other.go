//go:build !linux

package contain

import (
	"context"
	"errors"

	"github.com/nodbus/nod/connectors/agents"
)

var errNotLinux = errors.New("only Linux can contain commands")

// Support returns None, because only Linux supports containment.
func Support() (Level, error) { return None, errNotLinux }

// KnownSupport returns the same as Support.
func KnownSupport(string) (Level, error) { return None, errNotLinux }

// Run refuses every command.
func Run(context.Context, Spec) (Report, error) {
	return Report{}, &agents.ExitError{Code: agents.CodeRefused, Err: errNotLinux}
}

// ReviewKilled returns an error, because no command runs contained on this operating system.
func ReviewKilled([]byte, func(string) bool, func(string) bool) (project string, r Report, err error) {
	return "", Report{}, errNotLinux
}

package people_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
)

// If a press or a command has waited too long behind others, the press is not submitted, and the command
// is not carried out.
func TestAnOldPressIsNotSubmitted(t *testing.T) {
	never := func(context.Context) error { t.Error("it was submitted"); return nil }
	long := time.Now().Add(-11 * time.Minute)
	require.ErrorIs(t, people.UntilKnown(t.Context(), long, never, func() {}, func(error) {}), context.DeadlineExceeded)
	require.ErrorIs(t, people.Within(t.Context(), time.Now().Add(-time.Minute), never), context.DeadlineExceeded)
}

// A press is submitted again until its result is known.
func TestAPressIsSubmittedUntilItsResultIsKnown(t *testing.T) {
	tries, unknown := 0, errors.New("unknown")
	var failed []error
	err := people.UntilKnown(t.Context(), time.Now(), func(context.Context) error {
		if tries++; tries == 1 {
			return unknown
		}
		return nil
	}, func() {}, func(err error) { failed = append(failed, err) })
	require.NoError(t, err)
	require.Equal(t, []error{unknown}, failed)
}

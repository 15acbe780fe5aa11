package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpansHaveDaysHoursAndMinutes(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30m": 30 * time.Minute, "1d": 24 * time.Hour, "1d12h": 36 * time.Hour, "7d": 168 * time.Hour, "1h30m": 90 * time.Minute,
	} {
		var s span
		require.NoError(t, s.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, time.Duration(s), text)
	}
	for _, text := range []string{"", "d", "1", "-1h", "1d-2h", "1day", "0s", "1w", "9999999d", "forever"} {
		var s span
		require.ErrorContains(t, s.UnmarshalText([]byte(text)), "is no length of time: write 30m, 8h or 1d", text)
	}
}

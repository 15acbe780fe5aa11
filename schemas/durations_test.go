package schemas

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDurationsInWords(t *testing.T) {
	day := 24 * time.Hour
	for _, c := range []struct {
		d            time.Duration
		exact, rough string
	}{
		{0, "0 seconds", "0 seconds"},
		{-time.Hour, "0 seconds", "0 seconds"},
		{time.Second, "1 second", "1 second"},
		{60 * time.Second, "60 seconds", "60 seconds"},
		{59_800 * time.Millisecond, "60 seconds", "59 seconds"},
		{90 * time.Second, "90 seconds", "90 seconds"},
		{121 * time.Second, "121 seconds", "2 minutes"},
		{300 * time.Second, "5 minutes", "5 minutes"},
		{15 * time.Minute, "15 minutes", "15 minutes"},
		{time.Hour, "60 minutes", "60 minutes"},
		{2 * time.Hour, "2 hours", "2 hours"},
		{day, "24 hours", "24 hours"},
		{7 * day, "7 days", "7 days"},
		{7*day - time.Second, "604799 seconds", "7 days"},
	} {
		assert.Equal(t, c.exact, FormatDuration(c.d))
		assert.Equal(t, c.rough, FormatRoughly(c.d))
	}
	assert.Equal(t, "15 minutes", FormatMinutes(15*time.Minute))
	assert.Equal(t, "120 minutes", FormatMinutes(2*time.Hour))
	assert.Equal(t, "1 minute", FormatMinutes(time.Minute))
	assert.Equal(t, "90 seconds", FormatMinutes(90*time.Second))
}

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestStatusSaysHowLongTheOldestRequestWaits(t *testing.T) {
	now := time.Date(2026, 3, 4, 14, 0, 0, 0, time.UTC)
	assert.Equal(t, "1 request waits for an answer; the oldest has waited for 5 minutes. See nod pending or nod inbox.",
		status{Waiting: 1, Oldest: now.Add(-5 * time.Minute)}.sentence(now))
	assert.Equal(t, "Nothing waits for an answer.", status{}.sentence(now))
}

package contain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// If reviews take long, the pause between them is longer, but at most six times the usual pause.
func TestLongReviewsAreRarer(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 15 * time.Millisecond: 5 * time.Second, 80 * time.Millisecond: 8 * time.Second, time.Minute: 30 * time.Second} {
		assert.Equal(t, want, pause(DefaultReviewEvery, took), took)
	}
}

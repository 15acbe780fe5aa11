//go:build !unix

package bench

import "time"

// CPUTime returns 0, because the processor time is unknown on this system.
func CPUTime() time.Duration { return 0 }

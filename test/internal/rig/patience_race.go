//go:build race

package rig

import "time"

// Patience is the time for which a test polls a condition. The race detector multiplies the CPU time of all
// that the test waits for.
const Patience = 3 * time.Minute

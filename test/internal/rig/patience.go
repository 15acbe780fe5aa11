//go:build !race

package rig

import "time"

// Patience is the time for which a test polls a condition.
const Patience = 30 * time.Second

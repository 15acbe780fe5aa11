//go:build race

package contain

const raceEnabled = true

//go:build linux && !amd64

package contain

var oldModeArguments map[uint32]uint32

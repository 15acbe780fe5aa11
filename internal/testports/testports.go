// Package testports finds ports for the servers that tests start.
package testports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// Free returns n free ports. They are below the range from which the kernel assigns ports,
// so that the kernel gives none of them to another program.
func Free(t *testing.T, n int) (ports []int) {
	for len(ports) < n {
		require.NoError(t, t.Context().Err(), "no port is free")
		port := 20_000 + rand.N(12_000)
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			defer l.Close() // closed only at the end, so that no port is found twice
			ports = append(ports, port)
		}
	}
	return ports
}

// Address returns a free address of this machine, HOST:PORT.
func Address(t *testing.T) string { return fmt.Sprint("127.0.0.1:", Free(t, 1)[0]) }

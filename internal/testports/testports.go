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
func Free(t *testing.T, n int) []int {
	ports, err := Find(n)
	require.NoError(t, err)
	return ports
}

// Find is Free for a caller without a test.
func Find(n int) (ports []int, err error) {
	for tries := 0; len(ports) < n; tries++ {
		port := 20_000 + rand.N(12_000)
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		switch {
		case err == nil:
			defer l.Close() // closed only at the end, so that no port is found twice
			ports = append(ports, port)
		case tries > 1000:
			return nil, fmt.Errorf("find a free port: %w", err)
		}
	}
	return ports, nil
}

// Address returns a free address of this machine, HOST:PORT.
func Address(t *testing.T) string { return fmt.Sprint("127.0.0.1:", Free(t, 1)[0]) }

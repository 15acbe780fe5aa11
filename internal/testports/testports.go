// Package testports finds ports for the servers that tests start.
package testports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// Free returns n free ports. Until t ends, no other test gets them. The kernel does not give these
// ports to another program, because they are below the range from which it assigns ports.
func Free(t *testing.T, n int) []int {
	r, err := Reserve(n)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Release()) })
	return r.Ports
}

// Reservation keeps ports from other tests, even from tests in other processes.
type Reservation struct {
	Ports []int
	held  []net.PacketConn // one UDP socket for each port; it leaves the port free for a TCP server
}

// Reserve reserves n ports as Free does, but without a test. The ports are reserved until Release or
// the end of the process.
func Reserve(n int) (*Reservation, error) {
	r := &Reservation{}
	for tries := 0; len(r.Ports) < n; tries++ {
		port := 20_000 + rand.N(12_000)
		held, err := claim(port)
		switch {
		case err == nil:
			r.Ports, r.held = append(r.Ports, port), append(r.held, held)
		case tries > 1000:
			return nil, errors.Join(fmt.Errorf("find a free port: %w", err), r.Release())
		}
	}
	return r, nil
}

// claim reserves a port. It returns an error if the port is reserved, or if a TCP server listens
// on it.
func claim(port int) (held net.PacketConn, err error) {
	address := fmt.Sprint("127.0.0.1:", port)
	if held, err = net.ListenPacket("udp", address); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return held, l.Close()
}

// Release ends the reservation. The caller must first stop the servers on the ports.
func (r *Reservation) Release() error {
	var errs []error
	for _, held := range r.held {
		errs = append(errs, held.Close())
	}
	r.held = nil
	return errors.Join(errs...)
}

// Address returns an address of this machine with a free port, as HOST:PORT.
func Address(t *testing.T) string { return fmt.Sprint("127.0.0.1:", Free(t, 1)[0]) }

package acp

import (
	"fmt"
	"net"

	"github.com/nodbus/nod/internal/loopback"
)

// Listen listens on addr, in the form HOST:PORT, for the HTTP endpoints of a stream. Other machines may
// be able to reach addr only if remote is set. If HOST is empty, it is 127.0.0.1 or, if remote is set,
// every address of this machine.
func Listen(addr string, remote bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: give the address as HOST:PORT, such as 127.0.0.1:4290", addr, err)
	}
	if host == "" && !remote {
		host = "127.0.0.1"
	}
	if !remote && !loopback.Is(host) {
		return nil, fmt.Errorf("listen on %s: other machines could reach it over plain HTTP: use 127.0.0.1, or allow it with --remote", addr)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

package bus

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/nodbus/nod/bus/roles"
)

// SetUsers replaces the users of a running server. Before it returns, it closes the connections of users
// that are gone, and leaves those of other users open. After an error the old users stay.
//
// A server that was started without users stays open to every client. A server asks only the token
// service whose key it had at its start. SetUsers closes all connections that the token service has
// admitted, and their clients connect again.
func (s *Server) SetUsers(users []roles.User) error {
	s.usersMu.Lock()
	defer s.usersMu.Unlock()
	if len(s.started.Users) == 0 || slices.Equal(users, s.users) {
		return nil
	}
	if len(users) == 0 {
		return errors.New("change the users of the embedded NATS server: without users it would accept every client")
	}
	o := s.started
	o.Users, o.Port = users, s.nats.Addr().(*net.TCPAddr).Port
	opts, err := o.serverOptions(roles.TokenServices(s.started.Users))
	if err != nil {
		return fmt.Errorf("change the users of the embedded NATS server: %w", err)
	}
	opts.TLSConfig, opts.TLSTimeout = s.tls, s.tlsTimeout // the TLS stays as it was at the start, even if another machine was invited meanwhile
	if err := s.nats.ReloadOptions(opts); err != nil {
		return fmt.Errorf("change the users of the embedded NATS server: %w", err)
	}
	s.users = users
	return nil
}

// remember keeps the options with which the server was started.
func (s *Server) remember(o EmbedOptions, opts *server.Options) {
	s.started, s.users = o, o.Users
	s.tls, s.tlsTimeout = opts.TLSConfig, opts.TLSTimeout
}

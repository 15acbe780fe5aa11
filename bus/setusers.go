package bus

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/nodbus/nod/bus/roles"
)

// SetUsers replaces the users of a running server. Before it returns, it closes the connections of
// users that are no longer among them. It leaves the connections of all other users open. After an
// error the old users stay.
//
// A server that was started without users stays open to every client. A server asks only the token
// service whose key it had at its start. SetUsers closes all connections of clients that the token
// service has admitted; these clients then connect again.
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
	opts.TLSConfig, opts.TLSTimeout = s.tls, s.tlsTimeout // the server keeps the TLS of its start, even if another machine was invited since then
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

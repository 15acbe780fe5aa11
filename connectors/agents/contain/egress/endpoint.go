// Package egress connects a contained command to the network through a proxy for HTTP, CONNECT and
// SOCKS5. The proxy connects only to granted hosts. It runs outside the container. The command
// reaches it at a loopback port of the command's network namespace.
package egress

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Endpoint is a host and a port. The host is a name or an IP address, in lower case.
type Endpoint struct {
	Host string
	Port uint16
}

func (e Endpoint) String() string { return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))) }

// ParseEndpoint parses HOST:PORT.
func ParseEndpoint(s string) (Endpoint, error) {
	host, port, err := net.SplitHostPort(s)
	n, portErr := strconv.ParseUint(port, 10, 16)
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if err != nil || portErr != nil || n == 0 || host == "" || strings.ContainsFunc(host, notInHost) {
		return Endpoint{}, fmt.Errorf("%q is not HOST:PORT, such as registry.npmjs.org:443", s)
	}
	if a, err := netip.ParseAddr(host); err == nil { // write each IP address in its only canonical form
		host = a.Unmap().String()
	}
	return Endpoint{host, uint16(n)}, nil
}

func notInHost(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/\@?#[]%"'`+"`$&;|<>(){}*!", r)
}

// notPublic contains address blocks whose addresses do not belong to one public host: shared, reserved
// and test networks, and IPv6 blocks whose addresses contain an IPv4 address. The methods of
// netip.Addr recognize private and other special addresses.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("64:ff9b::/32"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// Public reports whether an address belongs to a public host. It returns false for this machine and
// for hosts in its local networks.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// Package loopback recognizes the names and addresses by which a machine reaches only itself.
package loopback

import "net/netip"

// Is reports whether host is localhost or a loopback address.
func Is(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

package weburl

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nodbus/nod/internal/loopback"
	"github.com/nodbus/nod/schemas"
)

// privateDomains are endings of host names on this machine and in its network. sharedAddresses are
// addresses between a provider and its customers; private networks also use them.
var (
	privateDomains = []string{".localhost", ".local", ".internal", ".lan", ".home.arpa", ".intranet", ".corp", ".home", ".localdomain"}
	// chosenDomains are public domains. Their names resolve to an address that the name contains,
	// or to this machine.
	chosenDomains   = []string{"nip.io", "sslip.io", "xip.io", "localtest.me", "lvh.me", "vcap.me", "lacolhost.com", "traefik.me", "local.gd", "backname.io", "1u.ms", "rbndr.us", "localho.st"}
	sharedAddresses = netip.MustParsePrefix("100.64.0.0/10")
	// metadataHosts give the machines of clouds their credentials.
	metadataHosts = strings.Fields("169.254.169.254 169.254.170.2 169.254.170.23 fd00:ec2::254 fd00:ec2::23 100.100.100.200 168.63.129.16 192.0.0.192 metadata metadata.google.internal metadata.goog instance-data instance-data.ec2.internal")
)

// hidden is the reason for a host whose name may be a number.
const hidden = "its address may hide an IP address"

var metadataFault = Fault{"reaches the service that gives this machine its cloud credentials", schemas.RiskHigh, HostOf}

// Private returns the reason why a URL is not on the public web. For a public URL it returns "".
func Private(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "is not a web address"
	case u.User != nil:
		return "its address holds a login"
	}
	return private(u)
}

func private(u *url.URL) string {
	if u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return "is not a web address"
	}
	host := lowerHost(u)
	if strings.IndexFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return "its address holds letters that may stand for others"
	}
	switch {
	case isInner(u):
		return "reaches this machine or its network"
	case slices.ContainsFunc(chosenDomains, func(d string) bool { return host == d || strings.HasSuffix(host, "."+d) }):
		return "its name may stand for this machine or its network"
	case hidesAddress(u):
		return hidden
	}
	return ""
}

func lowerHost(u *url.URL) string {
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
}

// isInner reports whether a host is this machine, or is certainly or probably in this machine's network.
func isInner(u *url.URL) bool {
	host := lowerHost(u)
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		return !ip.IsGlobalUnicast() || ip.IsPrivate() || sharedAddresses.Contains(ip) || loopback.Is(host)
	}
	return !hidesAddress(u) && !strings.Contains(host, ".") || slices.ContainsFunc(privateDomains, func(d string) bool { return strings.HasSuffix(host, d) })
}

// hidesAddress reports whether a host that is no address in its usual form may be a number, such as
// 2130706433 or 0x7f.1, which programs take for an address.
func hidesAddress(u *url.URL) bool {
	host := lowerHost(u)
	if host == "" {
		return false
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if _, err := netip.ParseAddr(host); err == nil || last == "" {
		return false
	}
	return last[0] >= '0' && last[0] <= '9'
}

func isAddress(u *url.URL) bool {
	_, err := netip.ParseAddr(lowerHost(u))
	return err == nil
}

func bareAddress(u *url.URL) string { return "reaches the bare IP address " + hostOf(u) }

func isMetadata(u *url.URL) bool {
	host := lowerHost(u)
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	return slices.Contains(metadataHosts, host)
}

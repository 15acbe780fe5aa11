package contain

import "strings"

// normalHost returns a host as endpoints are compared: in lower case, without the final dot.
func normalHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

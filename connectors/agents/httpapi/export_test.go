package httpapi

import "slices"

// Document is openapi.json as the server sends it.
var Document = document

// Routes returns all routes as METHOD PATH.
func Routes() []string {
	all := []string{"POST " + hookPath}
	for _, r := range (&Server{}).routes() {
		all = append(all, r.method+" "+r.path)
	}
	slices.Sort(all)
	return all
}

// Port returns the server's port.
func (s *Server) Port() int { return s.addr.Port }

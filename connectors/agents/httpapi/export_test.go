package httpapi

import "slices"

// Document returns the OpenAPI document as the server sends it.
var Document = document

// Routes returns all routes in the form METHOD PATH, sorted.
func Routes() []string {
	all := []string{"POST " + hookPath}
	for _, r := range (&Server{}).routes() {
		all = append(all, r.method+" "+r.path)
	}
	slices.Sort(all)
	return all
}

// Port returns the TCP port on which the server listens.
func (s *Server) Port() int { return s.addr.Port }

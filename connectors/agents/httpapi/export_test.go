package httpapi

import "slices"

// Document is openapi.json as it is served.
var Document = document

// Routes are all that is served, as METHOD path.
func Routes() []string {
	all := []string{"POST " + hookPath}
	for _, r := range (&Server{}).routes() {
		all = append(all, r.method+" "+r.path)
	}
	slices.Sort(all)
	return all
}

// Port is where the server listens.
func (s *Server) Port() int { return s.addr.Port }

package policy

import "mvdan.cc/sh/v3/syntax"

// redirect allows to discard output, to join the two outputs, and to read a
// plain file.
func (s *scope) redirect(r *syntax.Redirect) {
	n := ""
	if r.N != nil {
		n = r.N.Value
	}
	if r.Word == nil || len(r.Word.Parts) == 0 || r.Hdoc != nil {
		s.refuse("holds a here-document")
		return
	}
	w, why := readWord(r.Word, s.src)
	if why != "" {
		s.refuse(why)
		return
	}
	output := n == "" || n == "1" || n == "2"
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll:
		if s.secretPath(w) {
			s.touch = true
		}
		if !output || w.glob || w.tilde || w.text != "/dev/null" {
			s.refuse("writes to " + w.text)
		}
	case syntax.DplOut:
		if !output || !w.bare || w.text != "1" && w.text != "2" {
			s.refuse("writes to " + w.text)
		}
	case syntax.RdrIn:
		if s.secretPath(w) {
			s.touch = true
			s.refuse("names a secret, " + w.text)
		}
		if n != "" && n != "0" || w.glob || w.tilde {
			s.refuse("reads from " + w.text)
		}
		s.reads = append(s.reads, w)
	default:
		s.refuse("redirects by " + r.Op.String())
	}
}

// feed notes that the parts from the nth on are given something to read.
func (s *scope) feed(n int) {
	for i := range s.parts[n:] {
		s.parts[n+i].fed = true
	}
}

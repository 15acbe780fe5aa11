package shell

import "github.com/nodbus/nod/actors/policy/shell/word"

import "mvdan.cc/sh/v3/syntax"

// redirect checks a redirection. It allows a redirection that discards output, joins standard
// output and standard error, or reads a plain file. nod asks about any other redirection.
func (line *Line) redirect(r *syntax.Redirect) {
	n := ""
	if r.N != nil {
		n = r.N.Value
	}
	if r.Word == nil || len(r.Word.Parts) == 0 || r.Hdoc != nil {
		line.Refuse("holds a here-document")
		return
	}
	w, why := word.Read(r.Word, line.src)
	if why != "" {
		line.Refuse(why)
		return
	}
	if w.Expands {
		line.Refuse(unknownNumber)
	}
	output := n == "" || n == "1" || n == "2"
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll:
		if line.secretPath(w) {
			line.secret = true
		}
		if !output || w.Glob || w.Tilde || w.Text != "/dev/null" {
			line.Refuse("writes to " + w.Text)
		}
	case syntax.DplOut:
		if !output || !w.Bare || w.Text != "1" && w.Text != "2" {
			line.Refuse("writes to " + w.Text)
		}
	case syntax.RdrIn:
		if line.secretPath(w) {
			line.secret = true
			line.Refuse(line.namesWhat(w))
		}
		if n != "" && n != "0" || w.Glob || w.Tilde {
			line.Refuse("reads from " + w.Text)
		}
		if line.Lost && isRelative(w) {
			line.Refuse(unknownDirectory)
		}
		line.inputFiles = append(line.inputFiles, w)
	default:
		line.Refuse("redirects by " + r.Op.String())
	}
}

// markInput notes that all parts from index n on read a file or a pipe.
func (line *Line) markInput(n int) {
	for i := range line.Parts[n:] {
		line.Parts[n+i].HasInput = true
	}
}

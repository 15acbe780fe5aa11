package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/nodbus/nod/actors/policy/shell/word"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// flows finds the words that may reach each command of a line from other commands and from redirections. The
// words of a command stand for its output.
type flows struct {
	src  string
	into map[*syntax.CallExpr][]string // the words that may reach a command
	vars *variables
	all  int // the number of words in into
}

// maxFlow bounds the words in flows, because each command of a long pipe reads all words before it.
const maxFlow = 4000

// feed notes that the commands in a node read these words.
func (f *flows) feed(n syntax.Node, words []string) {
	for _, call := range allCalls(n) {
		if f.all += len(words); f.all > maxFlow {
			return
		}
		f.into[call] = append(f.into[call], words...)
	}
}

// words returns the words of the commands and of the redirections in a node, and the words of the commands
// whose output reaches the node through a variable.
func (f *flows) words(n syntax.Node) (all []string) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok && len(all) < maxFacts {
			text, _ := word.Known(w, f.src)
			all = append(append(all, text), f.vars.fill(w)...)
		}
		return true
	})
	return append(all, f.vars.outputs(n)...)
}

// redirects notes that the commands of a statement read its input redirections.
func (f *flows) redirects(s *syntax.Stmt) {
	if s.Cmd == nil {
		return
	}
	for _, r := range s.Redirs {
		switch r.Op {
		case syntax.RdrIn, syntax.RdrInOut, syntax.WordHdoc:
			f.feed(s.Cmd, f.words(r.Word))
		case syntax.Hdoc, syntax.DashHdoc:
			if r.Hdoc != nil {
				f.feed(s.Cmd, f.substituted(r.Hdoc))
			}
		}
	}
}

// callExpr notes the words that reach a command from the commands in its own words, and the words that it
// gives to these commands.
func (f *flows) callExpr(c *syntax.CallExpr) {
	for _, arg := range c.Args {
		f.into[c] = append(f.into[c], f.substituted(arg)...)
		syntax.Walk(arg, func(n syntax.Node) bool {
			if p, ok := n.(*syntax.ProcSubst); ok && p.Op == syntax.CmdOut {
				given := f.into[c]
				for _, other := range c.Args {
					if other != arg {
						given = append(given[:len(given):len(given)], f.words(other)...)
					}
				}
				f.feed(p, given)
			}
			return true
		})
	}
}

// substituted returns the words of the commands whose output becomes part of a word.
func (f *flows) substituted(w *syntax.Word) (all []string) {
	syntax.Walk(w, func(n syntax.Node) bool {
		var inner []*syntax.Stmt
		switch n := n.(type) {
		case *syntax.CmdSubst:
			inner = n.Stmts
		case *syntax.ProcSubst:
			inner = n.Stmts
		default:
			return len(all) < maxFacts
		}
		for _, s := range inner {
			all = append(all, f.words(s)...)
		}
		return false
	})
	return append(all, f.vars.outputs(w)...)
}

// sockets adds a command for each redirection to or from another machine, such as > /dev/tcp/host/80. The
// command is nc, because Bash does the same for such a redirection.
func (f *Facts) sockets(s *syntax.Stmt, in *flows) {
	for _, r := range s.Redirs {
		w, _ := word.Known(r.Word, in.src)
		host, port, ok := socketOf(w)
		if !ok {
			continue
		}
		outer := f.feeding
		if s.Cmd != nil {
			f.feeding = append(outer[:len(outer):len(outer)], in.words(s.Cmd)...)
			for _, call := range allCalls(s.Cmd) {
				f.feeding = append(f.feeding, in.into[call]...)
			}
		}
		f.addOne([]string{"nc", host, port}, false)
		f.feeding = outer
	}
}

// socketFile matches the files with which Bash connects to another machine. The host or the port is empty if
// only the shell knows it.
var socketFile = lazyregexp.New(`^/dev/(?:tcp|udp)/([A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*)/([A-Za-z0-9]*)$`)

// socketOf returns the host and the port of a file with which Bash connects to another machine.
func socketOf(w string) (host, port string, ok bool) {
	m := socketFile.FindStringSubmatch(w)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

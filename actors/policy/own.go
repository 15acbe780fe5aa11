package policy

import (
	"regexp"
	"slices"
	"strings"
)

// ownVerbs are nod's commands that only show; every other one decides, grants
// or configures, and so does one that this list does not know yet.
var ownVerbs = map[string]bool{
	"pending": true, "show": true, "ask": true, "doctor": true, "grants": true, "version": true, "help": true, "--help": true, "--version": true, "-h": true,
	"policy check": true, "policy explain": true, "policy test": true, "policy presets": true, "policy replay": true, "policy suggest": true,
	"session show": true, "settings show": true, "settings schema": true, "audit tail": true, "audit verify": true,
}

var ownText = regexp.MustCompile(`(?i)(?:^|[^A-Za-z0-9_.-])nod(?:\.exe)?\s+(?:--?[a-z-]+(?:[= ]\S+)?\s+)*(?:allow|deny|freeze|thaw|up|engine|connector|setup|install|uninstall|service|invite|join|session\s+set|grant|revoke|gate|settings\s+apply|approvers|pair|keys|hook|inbox)\b`)

func (f *facts) ownCommand(argv []string) {
	if b := base(argv[0]); b != "nod" && !(b == "go" && slices.ContainsFunc(argv, func(a string) bool { return strings.HasSuffix(a, "cmd/nod") || strings.Contains(a, "cmd/nod@") })) {
		return
	}
	if base(argv[0]) == "go" {
		if len(argv) < 2 || argv[1] != "run" {
			return
		}
		i := slices.IndexFunc(argv, func(a string) bool { return strings.Contains(a, "cmd/nod") })
		argv = argv[i:]
	}
	if len(argv) > 1 && argv[1] == "exec" { // it runs, inside less, what follows
		for i := range argv[2:] {
			f.ownCommand(argv[2+i:])
		}
		return
	}
	verb := strings.Join(argv[1:min(len(argv), 3)], " ")
	if len(argv) == 1 || ownVerbs[verb] || ownVerbs[argv[1]] {
		return
	}
	f.own = "agents may not run nod commands that decide, grant or configure"
}

// ownWrites looks for a command that may write nod's own files: a redirection
// into them, or any command but a reader that names them.
func (f *facts) ownWrites(unparsed bool) {
	const why = "agents may not write nod's own files"
	for _, w := range f.writes {
		if f.ownPath(w) {
			f.own = why
		}
	}
	if !slices.ContainsFunc(f.words, f.ownPath) {
		return
	}
	if unparsed {
		f.own = why
		return
	}
	for _, argv := range f.argvs {
		spec := f.pol.specs[argv[0]]
		if spec == nil && argv[0] != "cd" && argv[0] != "test" && argv[0] != "[" && argv[0] != "git" || argv[0] == "find" {
			if slices.ContainsFunc(argv, f.ownPath) || slices.ContainsFunc(f.argvs, func(a []string) bool { return a[0] == "cd" && slices.ContainsFunc(a, f.ownPath) }) {
				f.own = why
				return
			}
		}
		if spec != nil {
			words := make([]word, len(argv)-1)
			for i, a := range argv[1:] {
				words[i] = word{text: a}
			}
			if _, bad := spec.parse(argv[0], words); bad != "" && slices.ContainsFunc(argv, f.ownPath) {
				f.own = why
				return
			}
		}
	}
}

func (f *facts) ownPath(p string) bool { return ownPathIn(f.pol, f.place, p) }

func (j *judge) ownPath(p string) bool { return ownPathIn(j.pol, j.place, p) }

func ownPathIn(pol *Policy, pl *place, p string) bool {
	if !pol.guarded && !mayNameOwn(p) && !slices.ContainsFunc(pl.dirs, mayNameOwn) {
		return false
	}
	for _, at := range pieces(p) {
		if spellsOwn(pol, at) {
			return true
		}
		for _, r := range pl.resolve(at) {
			if spellsOwn(pol, r) {
				return true
			}
		}
	}
	return false
}

// mayNameOwn is a quick look: every name of nod's own files holds "nod".
func mayNameOwn(p string) bool {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '*', '?', '[':
			return true
		case 'n', 'N':
			if i+2 < len(p) && p[i+1]|0x20 == 'o' && p[i+2]|0x20 == 'd' {
				return true
			}
		}
	}
	return false
}

// spellsOwn reports whether p names nod's files. A pattern counts where some
// of the name is spelled out: rm * is about other things, and asks.
func spellsOwn(pol *Policy, p string) bool {
	if isGlob(p) {
		for seg := range strings.SplitSeq(slashes(p), "/") {
			if isGlob(seg) && len(strings.Trim(seg, "*?[]")) < 2 {
				return false
			}
			for i := 0; i < len(seg); i++ {
				if seg[i] >= 0x80 {
					return false
				}
			}
		}
	}
	return pol.own.has(p, true)
}

// pieces are p and what stands between the signs that may start or end a path
// in it, as in dd of=FILE, @FILE and REV:FILE..REV:FILE.
func pieces(p string) []string {
	out := []string{p}
	if !strings.ContainsAny(p, "=:@,") {
		return out
	}
	for piece := range strings.FieldsFuncSeq(p, func(r rune) bool { return strings.ContainsRune("=:@,", r) }) {
		out = append(out, piece)
		if before, after, ok := strings.Cut(piece, ".."); ok {
			out = append(out, before, after)
		}
	}
	return out
}

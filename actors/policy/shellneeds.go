package policy

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// errUntold has a person asked about a line that may read more than its words.
var errUntold = errors.New("what it reads cannot be told")

// ShellNeeds are the permissions without which a command line that only reads
// does not do what it says: to read where it may stand, all that its words may
// name as paths, and the whole work tree of a repository that git reads, which
// together is more than it reads. A tool that is no shell is ErrOtherTool; every
// other error says why it cannot be told what the line reads, and then a person
// must be asked. disk is of the machine that the line runs on.
func (p *Policy) ShellNeeds(c Call, disk Disk) ([]Permission, error) {
	if canonical(c.ToolName).kind != kindShell {
		return nil, ErrOtherTool
	}
	line, why := p.line(&c)
	if why != "" || !line.harmless() || len(line.dirs) == 0 {
		return nil, errUntold
	}
	r := reading{disk: disk, commands: p.commands, dirs: line.stands()}
	r.paths = slices.Clone(r.dirs)
	for ; line != nil; line = line.again {
		for i := range line.parts {
			if err := r.part(line.parts[i].words); err != nil {
				return nil, err
			}
		}
		for _, w := range line.reads {
			if err := r.word(w); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(r.paths)
	var perms []Permission
	for _, at := range slices.Compact(r.paths) {
		if !path.IsAbs(at) {
			return nil, errUntold
		}
		perms = append(perms, Permission{AccessRead, at})
	}
	return perms, nil
}

// line is a shell call's command as it is read where the tool runs it; why says
// what of the call is not known.
func (p *Policy) line(c *Call) (line *scope, why string) {
	in, err := readInput(c.Input)
	if err != nil {
		return nil, err.Error()
	}
	src, dir, why := in.command()
	pl := p.at(c)
	if dir != "" {
		pl.dirs = newPlace(&Call{Cwd: dir}).dirs
	}
	line, _ = p.read(src, pl)
	return line, why
}

// stands are the directories that the line may stand in. Where a cd's path is
// not there without its "..", Bash follows it as it is written, so that is one
// of them.
func (s *scope) stands() []string {
	dirs := slices.Clone(s.dirs)
	for i := range s.parts {
		if words := s.parts[i].words; words[0].text == "cd" {
			to := words[len(words)-1].text
			for _, d := range dirs {
				dirs = append(dirs, from(d, to))
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// from is p as a path from dir. It keeps "..", which a Resolver understands.
func from(dir, p string) string {
	if path.IsAbs(p) {
		return p
	}
	return dir + "/" + p
}

// reading collects the paths that a line may read.
type reading struct {
	disk     Disk
	commands commandTable
	dirs     []string // where the line may stand
	paths    []string
}

func (r *reading) part(words []word) error {
	name := words[0].text
	if name == "rtk" { // shortens what git prints
		name, words = "git", words[1:]
	}
	words = words[1:]
	switch {
	case name == "workmux": // shows what other agents read
		return errUntold
	case name == "find" && slices.ContainsFunc(words, func(w word) bool { return w.text == "-L" || w.text == "-follow" }):
		return errUntold
	case r.commands.entry(name).follows != "":
		c := r.commands.entry(name)
		if a, _ := c.parse(name, words); a.has(strings.Fields(c.follows)...) {
			return errUntold
		}
	case name == "git":
		if err := r.repository(words); err != nil {
			return err
		}
	}
	for _, w := range words {
		if err := r.word(w); err != nil {
			return err
		}
	}
	return nil
}

// repository adds the work trees that git may find.
func (r *reading) repository(words []word) error {
	dirs := slices.Clone(r.dirs)
	for i, w := range words {
		if w.text == "-C" && i+1 < len(words) {
			dirs = append(dirs, from(r.dirs[0], words[i+1].text))
		}
	}
	for _, d := range dirs {
		top, err := r.disk.WorkTree(d)
		if err != nil {
			return err
		}
		r.paths = append(r.paths, top)
	}
	return nil
}

// word adds what a word may name from each directory: the word, and what follows
// = or the letters of a flag.
func (r *reading) word(w word) error {
	texts := []string{w.text}
	if _, value, ok := strings.Cut(w.text, "="); ok {
		texts = append(texts, value)
	}
	if i := strings.IndexAny(w.text, "/~."); strings.HasPrefix(w.text, "-") && i > 0 {
		texts = append(texts, w.text[i:])
	}
	for _, t := range texts {
		switch at := strings.IndexAny(t, "*?["); {
		case t == "" || t == "/dev/null":
		case strings.HasPrefix(t, "~"):
			return errUntold
		case !w.glob || at < 0:
			for _, d := range r.dirs {
				r.paths = append(r.paths, from(d, t))
			}
		case strings.Contains(t[at:], "/"):
			return errUntold // any of the directories that it stands for may be a link
		default:
			if err := r.pattern(t[:at], t[strings.LastIndexAny(t, "*?[]")+1:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// pattern adds the directory that a pattern is about, and the links in it that
// the pattern may stand for, by what it begins and ends with: of what is between,
// quotes may have made letters.
func (r *reading) pattern(begin, end string) error {
	in, begin := begin[:strings.LastIndexByte(begin, '/')+1], begin[strings.LastIndexByte(begin, '/')+1:]
	for _, d := range r.dirs {
		dir := from(d, in)
		links, err := r.disk.Links(dir)
		if err != nil {
			return err
		}
		r.paths = append(r.paths, dir)
		for _, name := range links {
			if low := strings.ToLower(name); strings.HasPrefix(low, strings.ToLower(begin)) && strings.HasSuffix(low, strings.ToLower(end)) {
				r.paths = append(r.paths, dir+"/"+name)
			}
		}
	}
	return nil
}

package policy

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell/word"
	"github.com/nodbus/nod/actors/policy/tools"
)

// errReadsUnknown makes nod ask about a line that may read more than its words name.
var errReadsUnknown = errors.New("nod cannot tell which files it reads")

// ShellNeeds returns the permissions that a command line that only reads needs: to read
// the directories that it may run in, all paths that its words may name, and the whole
// work tree of a repository that git reads. Together they are more than the line reads.
// It returns ErrOtherTool for a tool that is not a shell; any other error tells why the
// reads are unknown, and then a person must be asked. disk is the machine's that the
// line runs on.
func (p *Policy) ShellNeeds(c Call, disk Disk) ([]Permission, error) {
	if tools.Named(c.ToolName).Kind != tools.Shell {
		return nil, ErrOtherTool
	}
	line, why := p.callLine(&c)
	if why != "" || !line.harmless() || len(line.Dirs) == 0 {
		return nil, errReadsUnknown
	}
	r := readCollector{disk: disk, dirs: line.directories()}
	r.paths = slices.Clone(r.dirs)
	for ; line != nil; line = line.zshReading {
		for i := range line.parts {
			if err := r.part(line.parts[i].words); err != nil {
				return nil, err
			}
		}
		for _, w := range line.inputFiles {
			if err := r.word(w); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(r.paths)
	var perms []Permission
	for _, at := range slices.Compact(r.paths) {
		if !path.IsAbs(at) {
			return nil, errReadsUnknown
		}
		perms = append(perms, Permission{AccessRead, at})
	}
	return perms, nil
}

// callLine reads a shell call's command in the directory that the tool runs it in; why
// tells which part of the call is unknown.
func (p *Policy) callLine(c *Call) (line *commandLine, why string) {
	in, err := tools.ReadInput(c.Input)
	if err != nil {
		return nil, err.Error()
	}
	src, dir, why := in.Command()
	loc := p.locate(c)
	if dir != "" {
		loc.Dirs = pathname.Locate(dir, "", "").Dirs
	}
	line, _ = p.shell.readLine(src, loc)
	return line, why
}

// directories returns the directories that the line may run in. If a cd's path does not
// exist without its "..", Bash follows it as it is written, so that path is included.
func (line *commandLine) directories() []string {
	dirs := slices.Clone(line.Dirs)
	for i := range line.parts {
		if words := line.parts[i].words; words[0].Text == "cd" {
			to := words[len(words)-1].Text
			for _, d := range dirs {
				dirs = append(dirs, joinPath(d, to))
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// joinPath returns p as a path from dir. It keeps "..", which a Resolver understands.
func joinPath(dir, p string) string {
	if path.IsAbs(p) {
		return p
	}
	return dir + "/" + p
}

// readCollector collects the paths that a line may read.
type readCollector struct {
	disk  Disk
	dirs  []string // directories that the line may run in
	paths []string
}

func (r *readCollector) part(words []word.Word) error {
	name := words[0].Text
	if name == "rtk" { // shortens the output of git
		name, words = "git", words[1:]
	}
	words = words[1:]
	switch {
	case name == "workmux": // shows what other agents read
		return errReadsUnknown
	case name == "find" && slices.ContainsFunc(words, func(w word.Word) bool { return w.Text == "-L" || w.Text == "-follow" }):
		return errReadsUnknown
	case commands.Entry(name).FollowsLinks(words):
		return errReadsUnknown
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
func (r *readCollector) repository(words []word.Word) error {
	dirs := slices.Clone(r.dirs)
	for i, w := range words {
		if w.Text == "-C" && i+1 < len(words) {
			dirs = append(dirs, joinPath(r.dirs[0], words[i+1].Text))
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

// word adds the paths that a word may name from each directory: the word, and the text
// after = or after the letters of a flag.
func (r *readCollector) word(w word.Word) error {
	texts := []string{w.Text}
	if _, value, ok := strings.Cut(w.Text, "="); ok {
		texts = append(texts, value)
	}
	if i := strings.IndexAny(w.Text, "/~."); strings.HasPrefix(w.Text, "-") && i > 0 {
		texts = append(texts, w.Text[i:])
	}
	for _, t := range texts {
		switch at := strings.IndexAny(t, "*?["); {
		case t == "" || t == "/dev/null":
		case strings.HasPrefix(t, "~"):
			return errReadsUnknown
		case !w.Glob || at < 0:
			for _, d := range r.dirs {
				r.paths = append(r.paths, joinPath(d, t))
			}
		case strings.Contains(t[at:], "/"):
			return errReadsUnknown // any of the directories that match may be a link
		default:
			if err := r.pattern(t[:at], t[strings.LastIndexAny(t, "*?[]")+1:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// pattern adds the directory of a pattern, and the links in it that may match by their
// beginning and end. The middle is not compared, because quotes may have made wildcards
// literal there.
func (r *readCollector) pattern(begin, end string) error {
	in, begin := begin[:strings.LastIndexByte(begin, '/')+1], begin[strings.LastIndexByte(begin, '/')+1:]
	for _, d := range r.dirs {
		dir := joinPath(d, in)
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

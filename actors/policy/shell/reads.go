package shell

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/shell/word"
)

// ErrReadsUnknown means that a line may read files that its words do not name, so nod must ask.
var ErrReadsUnknown = errors.New("nod cannot tell which files it reads")

// Disk describes the symbolic links and repositories on the machine of a command line. If a method
// returns an error, the links or the repository are unknown.
type Disk interface {
	// Links returns the names of the symbolic links in a directory.
	Links(dir string) ([]string, error)
	// WorkTree returns the top of the first repository that git finds in dir or above it. Without a
	// repository, it returns dir itself.
	WorkTree(dir string) (string, error)
}

// Reads returns the paths that a harmless line may read. These are the directories in which the
// line may run, all paths that its words may mean and, if the line runs git, whole work trees. The
// error means that the paths are unknown.
func (line *Line) Reads(disk Disk) ([]string, error) {
	r := readCollector{disk: disk, dirs: line.directories()}
	r.paths = slices.Clone(r.dirs)
	for ; line != nil; line = line.zshReading {
		for i := range line.Parts {
			if err := r.part(line.Parts[i].Words); err != nil {
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
	return slices.Compact(r.paths), nil
}

// directories returns the directories in which the line may run. Bash removes each ".." from the
// path of a cd by name. If the result is not a directory, Bash follows the path as it is written.
// directories returns both paths.
func (line *Line) directories() []string {
	dirs := slices.Clone(line.Dirs)
	for i := range line.Parts {
		if words := line.Parts[i].Words; words[0].Text == "cd" {
			to := words[len(words)-1].Text
			for _, d := range dirs {
				dirs = append(dirs, joinPath(d, to))
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// joinPath returns p as a path below dir. It keeps "..", because its meaning depends on symbolic links.
func joinPath(dir, p string) string {
	if path.IsAbs(p) {
		return p
	}
	return dir + "/" + p
}

type readCollector struct {
	disk  Disk
	dirs  []string // directories in which the line may run
	paths []string
}

func (r *readCollector) part(words []word.Word) error {
	name := words[0].Text
	if name == "rtk" { // rtk runs git and shortens git's output
		name, words = "git", words[1:]
	}
	words = words[1:]
	switch {
	case name == "workmux": // workmux shows the output of other agents, and these may have read any file
		return ErrReadsUnknown
	case name == "find" && slices.ContainsFunc(words, func(w word.Word) bool { return w.Text == "-L" || w.Text == "-follow" }):
		return ErrReadsUnknown
	case commands.Entry(name).FollowsLinks(words):
		return ErrReadsUnknown
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

// repository adds the top of each repository that a git command may use.
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

// word adds the paths that a word may mean in each directory. A path may be the whole word or the
// text after =. In a flag, a path may also begin at the first /, ~ or dot.
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
			return ErrReadsUnknown
		case !w.Glob || at < 0:
			for _, d := range r.dirs {
				r.paths = append(r.paths, joinPath(d, t))
			}
		case strings.Contains(t[at:], "/"):
			return ErrReadsUnknown // a directory that matches the pattern may be a symbolic link
		default:
			if err := r.pattern(t[:at], t[strings.LastIndexAny(t, "*?[]")+1:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// pattern adds the directory of a file name pattern. It also adds each symbolic link in this
// directory whose name begins and ends like the pattern. It does not compare the text in between,
// because wildcards there may have been quoted.
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

package contained

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell"
)

// split divides words into flags and operands. The argument valued lists the flags whose value is
// the next word, such as -o and --output.
func split(args []shell.Term, valued ...string) (flags, operands []shell.Term) {
	for i := 0; i < len(args); i++ {
		t := args[i]
		switch {
		case t.Known && t.Text == "--":
			return flags, append(operands, args[i+1:]...)
		case !strings.HasPrefix(t.Before(), "-") || t.Text == "-":
			operands = append(operands, t)
		default:
			flags = append(flags, t)
			for _, v := range valued {
				if t.Text == v && i+1 < len(args) {
					i++
				}
			}
		}
	}
	return flags, operands
}

// hasFlag reports whether the flags contain one of the letters, alone or in a group such as -rf, or
// one of the long flags, whole or abbreviated.
func hasFlag(flags []shell.Term, letters string, long ...string) bool {
	for _, f := range flags {
		name, _, _ := strings.Cut(f.Text, "=")
		if !strings.HasPrefix(name, "--") {
			if strings.ContainsAny(name[1:], letters) {
				return true
			}
			continue
		}
		for _, l := range long {
			if len(name) > 2 && strings.HasPrefix(l, name) {
				return true
			}
		}
	}
	return false
}

// deletes checks rm, which may delete only build output and files in the container's own /tmp.
func (c *command) deletes() {
	_, operands := split(c.args)
	if len(operands) == 0 {
		c.refuse("deletes files that are not known")
	}
	for _, t := range operands {
		all := c.resolve(t)
		if len(all) == 0 || strings.Contains(t.Text, "..") {
			c.refuse("deletes files that are not known")
			return
		}
		for _, p := range all {
			if !inPrivate(c.script, p) && !throwaway(c.script, p) {
				c.refuse("deletes " + t.Text + ", which is not build output")
			}
		}
	}
}

func (c *command) removesEmpty() {
	_, operands := split(c.args)
	for _, t := range operands {
		c.writes(t, false)
	}
}

// copies checks cp. It refuses a copy that is a link, because a later write to the copy would also
// change the original.
func (c *command) copies() {
	flags, operands := split(c.args, "-t", "--target-directory", "-S", "--suffix")
	if hasFlag(flags, "lst", "--link", "--symbolic-link", "--target-directory", "--remove-destination") || hasFlag(flags, "n", "--no-clobber") && hasFlag(flags, "fiu", "--force", "--interactive", "--update") {
		c.refuse("makes links, or names its target by a flag")
		return
	}
	if len(operands) < 2 {
		c.refuse("has a target that is not known")
		return
	}
	last := len(operands) - 1
	c.writes(operands[last], !hasFlag(flags, "n", "--no-clobber"))
	c.carries(operands[:last], operands[last])
}

// moves checks mv, which must not overwrite a file. A moved file must stay in the project and
// outside build output, because build output may be deleted later.
func (c *command) moves() {
	flags, operands := split(c.args)
	if !hasFlag(flags, "n", "--no-clobber") || hasFlag(flags, "fibtuS", "--force", "--interactive", "--update", "--target-directory", "--exchange") {
		c.refuse("may overwrite a file; with -n it does not")
		return
	}
	if len(operands) > 1 {
		c.carries(operands[:len(operands)-1], operands[len(operands)-1])
	}
	for i, t := range operands {
		c.writes(t, false)
		for _, p := range c.resolve(t) {
			lasting := pathname.Within(p, c.script.Project) && !throwaway(c.script, p)
			if i == len(operands)-1 && !lasting {
				c.refuse("moves files out of the project")
			}
		}
	}
}

// links checks ln, which may make only new symbolic links within the project.
func (c *command) links() {
	flags, operands := split(c.args)
	if !hasFlag(flags, "s", "--symbolic") || hasFlag(flags, "fibntTSLP", "--force", "--target-directory", "--no-dereference") {
		c.refuse("makes hard links, or replaces files")
		return
	}
	if len(operands) > 1 {
		c.carries(operands[:len(operands)-1], operands[len(operands)-1])
	}
	for _, t := range operands {
		c.writes(t, false)
		for _, p := range c.resolve(t) {
			switch {
			case !pathname.Within(p, c.script.Project) || strings.Contains(t.Text, ".."):
				c.refuse("makes a link that leads out of the project")
			case throwaway(c.script, p): // a later rm of build output could delete files through the link
				c.refuse("makes a link in build output")
			}
		}
	}
}

// creates checks commands that create or change the files in their operands without a loss of content.
func (c *command) creates() {
	_, operands := split(c.args, "-m", "-r", "-d", "-t", "--mode", "--reference", "--date")
	for _, t := range operands {
		c.writes(t, false)
	}
}

func (c *command) tees() {
	flags, operands := split(c.args)
	for _, t := range operands {
		c.writes(t, !hasFlag(flags, "a", "--append"))
		c.stores(t)
	}
}

func (c *command) changesMode() {
	flags, operands := split(c.args)
	if len(flags) > 0 && hasFlag(flags, "R", "--recursive", "--reference") || len(operands) < 2 {
		c.refuse("changes who may use many files")
		return
	}
	for _, t := range operands[1:] {
		c.writes(t, false)
	}
}

// tarLetters are the flags with which tar only lists an archive, or unpacks it to a directory.
const tarLetters = "txvfzjJaCkOpm"

// archives checks tar and unzip, which may list an archive, or unpack it into /tmp or build output.
func (c *command) archives() {
	argv, known := c.argv()
	text := strings.Join(argv[1:], " ")
	first := strings.TrimLeft(strings.Split(text+" ", " ")[0], "-")
	switch {
	case c.name == "tar" && slices.ContainsFunc(argv[1:], func(w string) bool { return strings.HasPrefix(w, "-") && strings.Trim(w[1:], tarLetters) != "" }), c.name == "tar" && strings.Trim(first, tarLetters) != "":
		c.refuse("has a flag that nod does not know")
	case !known, strings.Contains(text, "--"), strings.Contains(text, "-I"), strings.Contains(first, "I"), strings.Contains(first, "P"), strings.Contains(text, " -P"), strings.Count(" "+text, " -C") > 1:
		c.refuse("may write files with these words")
	case c.name == "tar" && strings.HasPrefix(first, "t"), c.name == "unzip" && (first == "l" || first == "t" || first == "Z"):
		return
	}
	foreign := slices.ContainsFunc(c.args, func(t shell.Term) bool {
		return t.Text != "" && slices.ContainsFunc(c.resolve(t), func(p string) bool { return inPrivate(c.script, p) })
	})
	for i, a := range argv[:len(argv)-1] {
		if c.name == "tar" && a == "-C" || c.name == "unzip" && a == "-d" {
			for _, p := range c.resolve(c.args[i]) {
				if inPrivate(c.script, p) || throwaway(c.script, p) && !foreign && !c.Piped {
					return
				}
			}
		}
	}
	c.refuse("may overwrite files of the project")
}

// compresses checks gzip and similar commands. Such a command replaces its input file unless a flag
// keeps the file. An unlisted flag may delete files, overwrite files or read further flags.
func (c *command) compresses() {
	list := commands.Compressors()[c.name]
	argv, _ := c.argv()
	writes, why := list.Outputs(argv[1:])
	if slices.ContainsFunc(c.args, func(t shell.Term) bool { return !t.Known && t.Before() == "" && t.Splits }) {
		why = "has words that are not known, which may be flags"
	}
	flags, operands := split(c.args, "-o", "-D", "-S")
	switch {
	case why != "":
		c.refuse(why)
	case len(operands) > 0 && !list.Keeps && !hasFlag(flags, "cklt", "--stdout", "--to-stdout", "--keep", "--list", "--test"):
		c.refuse("replaces files")
	}
	for _, w := range writes {
		out := shell.Term{Text: w, Known: true}
		c.output(out, false)
		c.carries(operands, out)
	}
}

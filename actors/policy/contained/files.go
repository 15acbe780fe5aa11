package contained

import (
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/actors/policy/shell"
)

// split divides words into flags and operands. valued lists the flags whose value is the next
// word: letters of short flags, and names of long ones.
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

// hasFlag reports whether one of the flags is a listed long flag, also abbreviated, or a group
// of short flags with one of the letters.
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

// deletes checks rm, which may delete only build output and files in the private /tmp.
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

// copies checks cp. After a copy as a link, a later write would change the original.
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
	c.writes(operands[len(operands)-1], !hasFlag(flags, "n", "--no-clobber"))
}

// moves checks mv. It must overwrite nothing, and moved files must stay in the project outside
// build output, which may be deleted later.
func (c *command) moves() {
	flags, operands := split(c.args)
	if !hasFlag(flags, "n", "--no-clobber") || hasFlag(flags, "fibtuS", "--force", "--interactive", "--update", "--target-directory", "--exchange") {
		c.refuse("may overwrite a file; with -n it does not")
		return
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

// links checks ln, which may only make new symbolic links within the project.
func (c *command) links() {
	flags, operands := split(c.args)
	if !hasFlag(flags, "s", "--symbolic") || hasFlag(flags, "fibntTSLP", "--force", "--target-directory", "--no-dereference") {
		c.refuse("makes hard links, or replaces files")
		return
	}
	for _, t := range operands {
		c.writes(t, false)
		for _, p := range c.resolve(t) {
			switch {
			case !pathname.Within(p, c.script.Project) || strings.Contains(t.Text, ".."):
				c.refuse("makes a link that leads out of the project")
			case throwaway(c.script, p): // a later rm of build output could delete through the link
				c.refuse("makes a link in build output")
			}
		}
	}
}

// creates checks commands that make or change the files in their operands without losing
// content.
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

// archives checks tar and unzip, which may list, or unpack into /tmp or build output.
func (c *command) archives() {
	argv, known := c.argv()
	text := strings.Join(argv[1:], " ")
	first := strings.TrimLeft(strings.Split(text+" ", " ")[0], "-")
	switch {
	case !known, strings.Contains(text, "--"), strings.Contains(text, "-I"), strings.Contains(first, "I"), strings.Contains(first, "P"), strings.Contains(text, " -P"), strings.Count(" "+text, " -C") > 1:
		c.refuse("may write files with these words")
	case c.name == "tar" && strings.HasPrefix(first, "t"), c.name == "unzip" && (first == "l" || first == "t" || first == "Z"):
		return
	}
	for i, a := range argv[:len(argv)-1] {
		if c.name == "tar" && a == "-C" || c.name == "unzip" && a == "-d" {
			for _, p := range c.resolve(c.args[i]) {
				if inPrivate(c.script, p) || throwaway(c.script, p) {
					return
				}
			}
		}
	}
	c.refuse("may overwrite files of the project")
}

// compresses checks gzip and similar commands, which replace a file unless they keep it.
func (c *command) compresses() {
	flags, operands := split(c.args)
	if len(operands) > 0 && !hasFlag(flags, "cklt", "--stdout", "--keep", "--list", "--test") || hasFlag(flags, "f", "--force") {
		c.refuse("replaces files")
	}
}

// compilers are commands whose flag -o names a file to write.
var compilers = map[string]bool{
	"go": true, "gcc": true, "cc": true, "g++": true, "c++": true, "clang": true, "clang++": true, "rustc": true, "ld": true, "javac": true, "tsc": true, "esbuild": true,
	"curl": true, "wget": true, "pandoc": true, "dot": true, "protoc": true, "ghc": true, "nasm": true, "as": true, "objcopy": true, "convert": true, "ffmpeg": true, "shuf": true,
	"iconv": true, "xxd": true, "sass": true, "tailwindcss": true, "wasm-pack": true, "openapi-generator": true,
}

// outputFlags checks flags that name a file to write. A person may have written a file with an
// extension of source code.
func (c *command) outputFlags() {
	for i, t := range c.args {
		name, value, eq := strings.Cut(t.Text, "=")
		out := t
		switch {
		case strings.HasPrefix(t.Text, "of="):
			out.Text = t.Text[3:]
		case len(name) > 2 && strings.HasPrefix(name, "-o") && attached[c.name] && !strings.HasPrefix(name, "-out"):
			out.Text = t.Text[2:]
		case name == "-o" && compilers[c.name], outputNames[name]:
			if !eq && i+1 < len(c.args) {
				out = c.args[i+1]
			} else {
				out.Text = value
			}
		default:
			continue
		}
		if !out.Known {
			c.refuse("writes a file whose path is not known")
			continue
		}
		base := out.Text[strings.LastIndexByte(out.Text, '/')+1:]
		dot := strings.LastIndexByte(base, '.')
		named := dot < 0 && base != "" && base[0] >= 'A' && base[0] <= 'Z' // a file without an extension but with a capital letter, such as Makefile, may be a source
		c.writes(out, named || name == "--basetemp" || dot >= 0 && secrets.SourceExtension(base[dot+1:]) && base != "coverage.out")
	}
}

// attached are the commands whose flag -o may have its value in the same word.
var attached = set("gcc cc g++ c++ clang clang++ ld curl shuf iconv as nasm javac rustc")

var outputNames = map[string]bool{
	"--output": true, "--output-file": true, "--outfile": true, "--outFile": true, "-coverprofile": true, "-cpuprofile": true, "-memprofile": true,
	"-trace": true, "-out": true, "--basetemp": true, "--log-file": true, "--LOG-FILE": true, "-blockprofile": true, "-mutexprofile": true, "--out": true,
}

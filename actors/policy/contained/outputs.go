package contained

import (
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// flags checks the flags of a command. A runner's flags must be in the list for the runner. The
// flags of an unknown command are checked by their names.
func (c *command) flags(name []string, args []shell.Term) {
	words := make([]string, len(args))
	for i, t := range args {
		if words[i] = t.Before(); !t.Known && t.Before() == "" && t.Splits {
			c.refuse("has words that are not known, which may be flags")
			return
		}
	}
	if n := len(words) - 1; n >= 0 && (words[n] == "--help" || words[n] == "--version") {
		words = words[:n]
	}
	writes, why, known := commands.ContainedFlags(name, words)
	switch {
	case !known:
		c.namedOutputs(args)
		c.namedHarm(args)
	case why != "":
		c.refuse(why)
	}
	for _, w := range writes {
		c.output(shell.Term{Text: w.Path, Known: true}, compilers[c.name] && w.Flag == "o")
	}
}

// namedOutputs checks flags that name a file to write, if the command has no list of flags.
func (c *command) namedOutputs(args []shell.Term) {
	for i, t := range args {
		name, value, eq := strings.Cut(t.Text, "=")
		out := t
		switch {
		case strings.HasPrefix(t.Text, "of="):
			out.Text = t.Text[3:]
		case len(name) > 2 && strings.HasPrefix(name, "-o") && attached[c.name] && !strings.HasPrefix(name, "-out"):
			out.Text = t.Text[2:]
		case name == "-f" && strings.HasSuffix(c.name, "tags"), writesTo(name):
			if eq {
				out.Text = value
			} else if i+1 < len(args) {
				out = args[i+1]
			}
		default:
			continue
		}
		c.output(out, compilers[c.name] && strings.HasPrefix(name, "-o"))
	}
}

// output checks a file or a directory that a flag makes a command write. The file's name must show
// that no person wrote its content. A compiler may write a program, whose name often has no extension.
func (c *command) output(out shell.Term, compiler bool) {
	if !out.Known {
		c.refuse("writes a file whose path is not known")
		return
	}
	base := path.Base(strings.TrimSuffix(out.Text, "/..."))
	program := compiler && !strings.Contains(base, ".") && strings.ToLower(base) == base && !strings.HasSuffix(out.Text, "/")
	c.writes(out, !program && !generated.MatchString(base))
}

// generated matches the names of files and directories that only tools write.
var generated = lazyregexp.New(`(?i)^(?:.+\.(?:o|so|a|lib|dll|dylib|exe|obj|class|jar|whl|wasm|test|bin|elf|hex|map|prof|pprof|log|tsbuildinfo|tgz|min\.js|min\.css|pb\.go|g\.dart)|` +
	`(?:c|cover|coverage|test|tests|bench|result|results|report|trace|mem|cpu|block|mutex)[\w-]*\.(?:out|txt|trace|html|json|xml|svg)|[\w-]*junit[\w-]*\.xml|` +
	`(?:gen|generated|__generated__|bin|obj|tmp|temp|logs?|reports?|test-results|artifacts|site|_site|public/build|\.?cache)(?:-[\w-]+)?)$`)

// compilers are commands whose flag -o names a program to write.
var compilers = set("go gcc cc g++ c++ clang clang++ rustc ld nasm as ghc javac wasm-pack tcc zig")

// attached are the commands whose flag -o may have its value in the same word.
var attached = set("gcc cc g++ c++ clang clang++ ld curl shuf iconv as nasm javac rustc ctags etags m4 bison flex pandoc dot msgfmt sass")

// writesTo reports whether the name of an unknown command's flag shows that the flag's value is a
// file or a directory to write.
func writesTo(flag string) bool {
	if flag == "-o" || flag == "-O" {
		return true
	}
	return len(flag) > 2 && flag[0] == '-' && outputFlag.MatchString(camel.ReplaceAllString(strings.TrimLeft(flag, "-"), "$1-$2"))
}

var camel = lazyregexp.New(`([a-z])([A-Z])`)

var outputFlag = lazyregexp.New(`(?i)^(?:.*[-_.])?(?:out|outs|outdir|outfile|outputs?|outputfile|outputdir|dest|destdir|destination|dst|save|write|dump|export|emit|backup|artifacts?|basetemp|logfile|cachedir|destdir|` +
	`(?:coverage?|cover|cpu|mem|block|mutex)profile|trace|(?:target|log|report|reports|cache|build|install|scratch|temp|tmp|work|results?|stats|coverage|profile|declaration|bin|pack|gen|data|state|site|html|xml|json|junit|log-junit|test)[-_]?(?:dir|directory|file|path|folder|root|location|prefix|destination|name))(?:[-_](?:to|dir|directory|file|path|folder|name|prefix|location))?$`)

// namedHarm checks a command that has no list of harmless flags. It refuses a flag or an operand whose
// name says that the command deletes or overwrites files, or whose value is a dangerous command line.
func (c *command) namedHarm(args []shell.Term) {
	if slices.ContainsFunc(args, func(t shell.Term) bool { return t.Text == "--help" || t.Text == "--version" || t.Text == "--dry-run" }) {
		return
	}
	first := true
	for _, t := range args {
		switch name, value, _ := strings.Cut(t.Text, "="); {
		case strings.HasPrefix(name, "-"):
			if harmfulFlag.MatchString(camel.ReplaceAllString(name, "$1-$2")) {
				c.refuse(name + " may delete or overwrite files")
			}
			if t.Known && value != "" {
				c.hiddenDanger(c.script, &c.Step, value)
			}
		case first:
			first = false
			if harmfulVerb.MatchString(name) && c.checks[c.name] == nil {
				c.refuse(name + " may delete or overwrite files")
			}
		}
	}
}

var (
	harmfulFlag = lazyregexp.New(`(?i)^--?(?:.*-)?(?:rm|del|delete|deletes?|remove|purge|prune|clean|wipe|erase|reset|force|overwrite|clobber|in-?place|replace|truncate|discard|uninstall|move)(?:-.*)?$`)
	harmfulVerb = lazyregexp.New(`(?i)^(?:rm|del|delete|remove|purge|prune|destroy|drop|wipe|erase|reset|uninstall|truncate|revert|restore|rollback|discard|abandon|gc|clean|cleanup|clear|nuke|overwrite|obliterate|expunge|unset|undo)$`)
)

package contained

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// gitKeeps lists subcommands of git, and flags with which they lose no work. Such a subcommand adds
// to the history or to the index, or stops if changes would be lost. "=" after a flag means that
// the flag takes a value.
var gitKeeps = map[string][]string{
	"add":              {"-A", "-u", "-n", "-v", "-N", "--all", "--update", "--dry-run", "--verbose", "--intent-to-add"},
	"commit":           {"-a", "-m=", "-am=", "-q", "-v", "-s", "-F=", "--all", "--message=", "--quiet", "--signoff", "--allow-empty", "--no-edit", "--author=", "--date=", "--dry-run"},
	"stash":            {"-u", "-q", "-m=", "--include-untracked", "--keep-index", "--message="},
	"stash push":       {"-u", "-q", "-m=", "--include-untracked", "--keep-index", "--message="},
	"stash apply":      {"-q", "--index"},
	"stash pop":        {"-q", "--index"},
	"merge":            {"--no-ff", "--ff-only", "--ff", "--no-edit", "--no-commit", "-m=", "-q", "--stat"},
	"cherry-pick":      {"-x", "-n", "--no-commit", "-m="},
	"revert":           {"--no-edit", "-n", "--no-commit", "-m="},
	"switch":           {"-c=", "--create=", "-q", "--detach"},
	"checkout -b":      {"-q"},
	"branch":           {"-q", "--track"},
	"tag":              {"-a", "-m=", "--annotate"},
	"mv":               {"-n", "-v", "-k"},
	"apply":            {"--check", "--cached", "--stat", "--numstat", "--summary"},
	"status":           {"-s", "-b", "--short", "--branch", "--porcelain", "--ignored", "-uno", "-uall"},
	"fetch":            {"-p", "-q", "-v", "-a", "-t", "--all", "--prune", "--tags", "--no-tags", "--quiet", "--verbose", "--depth="},
	"pull":             {"-q", "-v", "--ff-only", "--quiet", "--no-edit"},
	"restore --staged": {"-q", "--quiet"},
	"restore -S":       {"-q", "--quiet"},
	"ls-remote":        {"-h", "-t", "--heads", "--tags", "-q"},
}

var gitNetwork = map[string]bool{"fetch": true, "pull": true, "ls-remote": true, "clone": true}

// git checks a git command. The command must only read, or must lose no work.
func (c *command) git() {
	args, dirs := c.args, c.Dirs
	for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") {
		switch t := args[0]; {
		case !t.Known:
			c.refuse("has options that are not known")
			return
		case t.Text == "--no-pager", t.Text == "-P", t.Text == "--no-optional-locks", t.Text == "--literal-pathspecs", t.Text == "--version", t.Text == "--help":
			args = args[1:]
		case t.Text == "-C" && len(args) > 1:
			for _, p := range c.resolve(args[1]) {
				if p != c.script.Project && !strings.HasPrefix(p, c.script.Project+"/") {
					c.refuse("uses a repository outside the project")
				}
			}
			if len(c.resolve(args[1])) == 0 {
				c.refuse("uses a repository that is not known")
			}
			dirs = c.resolve(args[1])
			args = args[2:]
		default:
			c.refuse(t.Text + " before the subcommand can re-point git")
			return
		}
	}
	if len(args) == 0 {
		return
	}
	c.subcommand(args, dirs)
}

// shows refuses a command that prints files of a repository with tracked secrets. A container hides such
// a secret only in the work tree. git would therefore think that the file was removed, and would print
// its content from the repository.
func (c *command) shows(sub string, texts, dirs []string) {
	shown, objects := commands.GitShows(sub, texts)
	for _, dir := range dirs {
		if shown == commands.ShowsNone && len(objects) == 0 {
			return
		}
		t, _ := c.script.Location.TrackedAt(dir)
		switch {
		case shown == commands.ShowsNone && !slices.ContainsFunc(objects, func(name string) bool { return t.Named(name) }):
		case t.Unread != "" || t.UnreadIndex != "":
			c.refuse(sub + " may print secrets that git tracks: " + cmp.Or(t.UnreadIndex, t.Unread))
		case len(t.Files) > 0:
			c.refuse(sub + " may print " + t.Files[0].Path + ", a file with secrets that git tracks or tracked")
		}
	}
}

func (c *command) subcommand(args []shell.Term, dirs []string) {
	texts := make([]string, len(args))
	known := true
	for i, t := range args {
		if texts[i] = t.Text; !t.Known {
			known = false
			if texts[i] = t.Before(); texts[i] == "" {
				texts[i] = "-?" // an unknown word may be any flag
			}
		}
	}
	if n := len(texts); known && (n == 2 || n == 3 && texts[0] == "worktree" && !strings.HasPrefix(texts[1], "-")) && texts[n-1] == "--help" {
		return // git shows the help of the subcommand
	}
	for n := min(2, len(texts)); n > 0; n-- {
		name := strings.Join(texts[:n], " ")
		if e := commands.Reader("git " + name); e != nil && name != "status" && name != "branch" && name != "tag" {
			if !e.Fits(texts[n:]) {
				c.refuse(name + " may do more than read with these words")
			}
			c.shows(name, texts[n:], dirs)
			return
		}
	}
	if e := commands.Reader("git " + texts[0]); e != nil && e.Fits(texts[1:]) && known {
		if _, why := e.Check("git", nil, nil); why == "" && (texts[0] == "status" || c.lists(texts)) {
			return
		}
	}
	c.keeps(texts, args)
}

// lists reports whether git branch or git tag has no operand. Without an operand, the command only lists.
func (c *command) lists(texts []string) bool {
	return !slices.ContainsFunc(texts[1:], func(t string) bool { return !strings.HasPrefix(t, "-") }) || slices.Contains(texts, "--list")
}

// keeps checks a subcommand against the table gitKeeps.
func (c *command) keeps(texts []string, args []shell.Term) {
	name, rest := texts[0], texts[1:]
	if len(rest) > 0 && (gitKeeps[name+" "+rest[0]] != nil || name == "stash" && !strings.HasPrefix(rest[0], "-")) {
		name, rest = name+" "+rest[0], rest[1:]
	}
	flags := gitKeeps[name]
	if flags == nil {
		c.refuse(name + " may lose work, or do what nod cannot bound")
		return
	}
	operands := 0
	for i := 0; i < len(rest); i++ {
		w := rest[i]
		before, _, eq := strings.Cut(w, "=")
		switch {
		case w == "--" && name != "branch" && name != "switch":
			operands += len(rest) - i - 1
			i = len(rest)
		case !strings.HasPrefix(w, "-"):
			operands++
		case eq && slices.Contains(flags, before+"="), slices.Contains(flags, w):
		case slices.Contains(flags, w+"=") && i+1 < len(rest):
			i++
		default:
			c.refuse(name + " " + w + " may lose work, or do what nod cannot bound")
			return
		}
	}
	switch {
	case gitNetwork[name]:
		c.remote(name, rest, args)
	case name == "mv" && slices.ContainsFunc(args, func(t shell.Term) bool {
		return slices.ContainsFunc(c.resolve(t), func(p string) bool { return throwaway(c.script, p) })
	}):
		c.refuse("mv moves files into build output, which may be deleted later")
	case name == "mv" && len(args) > 2:
		c.carries(args[1:len(args)-1], args[len(args)-1])
	case name == "branch" && operands != 1 && operands != 2, name == "checkout -b" && (operands < 1 || operands > 2), name == "apply" && len(rest) == operands:
		c.refuse(name + " with these words may lose work")
	case name == "commit" && !slices.ContainsFunc(rest, func(w string) bool {
		return strings.HasPrefix(w, "-m") || strings.HasPrefix(w, "-am") || strings.HasPrefix(w, "--message") || strings.HasPrefix(w, "-F") || w == "--no-edit" || w == "--dry-run"
	}):
		c.refuse("commit opens an editor")
	}
}

var sshRemote = lazyregexp.New(`^(?:ssh://|git\+ssh://|[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+:)`)

// inProject reports whether a full path is in the project.
func (c *command) inProject(p string) bool {
	all := c.resolve(shell.Term{Text: p, Known: true})
	return len(all) > 0 && !slices.ContainsFunc(all, func(p string) bool { return !pathname.Within(p, c.script.Project) })
}

// remote adds the network permission that a remote needs. If the line contains the remote's
// address, this is the permission for its host. Otherwise it is the permission for the whole
// network, because this package does not read the repository's configuration.
func (c *command) remote(name string, rest []string, args []shell.Term) {
	tag := "@network"
	for i, w := range rest {
		if name == "ls-remote" && strings.HasPrefix(w, "/") && c.inProject(w) {
			return // git only lists a repository in the project, without network
		}
		switch u, err := url.Parse(w); {
		case sshRemote.MatchString(w):
			c.refuse("reaches a remote by SSH, whose keys a contained command does not get")
			return
		case strings.Contains(w, "::") || strings.HasPrefix(w, "file:") || strings.HasPrefix(w, "/") || strings.HasPrefix(w, "."):
			c.refuse("names a remote that nod does not follow")
			return
		case !strings.HasPrefix(w, "-") && !strings.Contains(w, "://") && strings.ContainsAny(w, "+:"):
			c.refuse("fetches into a branch, whose commits may be lost")
			return
		case i < len(args) && err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil:
			tag = endpoint(u)
		}
	}
	c.need(c.Words, tag)
}

package commands_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/schemas"
)

// harmful lists arguments, by command, that make the command write, run a program, read other
// files, reveal more or wait. Most entries are a flag with its own arguments.
var harmful = map[string][]string{
	"sort":     {"-o x", "--output=x", "--compress-program=x", "--files0-from=x", "-T x", "--temporary-directory=x"},
	"uniq":     {"x y"},
	"tree":     {"-o x", "-R", "--fromfile x"},
	"date":     {"-s x", "--set=x", "-f x", "--file=x"},
	"file":     {"-C", "-z x", "-f x", "-m x", "--compile", "--files-from=x", "--magic-file=x", "-Z x"},
	"wc":       {"--files0-from=x"},
	"du":       {"--files0-from=x", "-X x", "--exclude-from=x"},
	"tail":     {"--pid=1"},
	"grep":     {"-f x y", "--file=x y", "-d recurse x y"},
	"rg":       {"--pre=x y", "-z x", "--search-zip x", "-f x y", "--file=x y", "--hostname-bin=x y", "--ignore-file=x y", "--type-add=x y"},
	"diff":     {"-l a.x b.x", "--paginate a.x b.x", "--to-file=x b.x", "--from-file=x b.x", "-X x a.x"},
	"jq":       {"-f x", "--from-file x", "--slurpfile a x", "--rawfile a x", "-L x .", "--argfile a x"},
	"sed":      {"-i p x", "--in-place p x", "-f x", "--file=x", "-I x p"},
	"awk":      {"-f x", "-i x p", "-v x=y p", "-E x", "-l x p"},
	"ps":       {"-E", "-o pid", "e", "-u x", "-uxe"},
	"od":       {"--traditional"},
	"column":   {"--table-hide x"},
	"printf":   {"-v x y"},
	"command":  {"-p x", "x"},
	"type":     {"-x y"},
	"ls":       {"--al"},
	"shasum":   {"-c x", "--check x"},
	"md5sum":   {"-c x", "--check x"},
	"df":       {"--sync"},
	"free":     {"-s 1"},
	"strings":  {"-T x y", "--target=x y"},
	"hostname": {"x", "-F x", "-f"},
}

var harmfulGit = map[string][]string{
	"diff":          {"--output=x", "--output x", "--ext-diff", "--textconv", "--no-index a b", "-O x", "--submodule=diff"},
	"log":           {"--output=x", "--ext-diff", "--textconv", "--show-signature", "--stdin", "-O x", "--remerge-diff"},
	"show":          {"--output=x", "--ext-diff", "--textconv", "--show-signature"},
	"branch":        {"-d x", "-D x", "-m x", "-M x", "-c x", "-C x", "-f x", "-u x", "-q x", "-t x", "--delete x", "--move x", "--copy x", "--force x", "--set-upstream-to=x", "--unset-upstream", "--edit-description", "--create-reflog x", "--no-list x", "--track x"},
	"grep":          {"-O x", "--open-files-in-pager x", "--no-index x", "-f x", "--textconv x", "--ext-grep x", "--untracked x"},
	"blame":         {"--contents x y", "-S x y", "--ignore-revs-file x y"},
	"cat-file":      {"--textconv x", "--filters x", "--batch"},
	"shortlog":      {"--output=x"},
	"reflog":        {"expire", "delete x", "drop x", "--output=x"},
	"tag":           {"x", "-d x", "-a x", "-s x", "-f x", "-v x", "-m x y", "--delete x", "--verify x"},
	"stash":         {"list x --output=x", "push", "pop", "drop", "-p list", "show --output=x"},
	"remote":        {"-v update", "add x y", "prune x", "show x", "set-url x y"},
	"worktree":      {"add x", "prune", "list --expire x", "-v add x"},
	"ls-files":      {"--exclude-from=x", "-X x", "--with-tree=x"},
	"rev-parse":     {"--parseopt", "--sq-quote x", "--git-path x"},
	"for-each-ref":  {"--stdin", "--shell", "--format=%(signature)"},
	"check-ignore":  {"--stdin"},
	"describe":      {"--output=x"},
	"status":        {"--output=x"},
	"rev-list":      {"--stdin", "--use-bitmap-index", "--output=x"},
	"count-objects": {"x"},
}

func newReaders(t *testing.T) *policy.Policy {
	t.Helper()
	p, err := policy.New(schemas.Permissions{})
	require.NoError(t, err)
	return p
}

func effect(t *testing.T, p *policy.Policy, command string) policy.Effect {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"command": command})
	require.NoError(t, err)
	return p.Check(policy.Call{ToolName: "Bash", Input: raw, Cwd: "/p", Home: "/home/ann"}).Effect
}

func TestHarmfulFlagsAsk(t *testing.T) {
	p := newReaders(t)
	for _, list := range []struct {
		before string
		flags  map[string][]string
	}{{"", harmful}, {"git ", harmfulGit}} {
		for name, flags := range list.flags {
			for _, f := range flags {
				for _, command := range []string{list.before + name + " " + f, "ls | " + list.before + name + " " + f + " | cat"} {
					assert.NotEqual(t, policy.Allow, effect(t, p, command), command)
				}
			}
		}
	}
}

// TestFlagListsMatter adds each harmful flag to its command's list, and nod must then allow the
// command. The test shows that nod asks about the flag only because the list lacks it. Therefore
// TestHarmfulFlagsAsk notices a harmful flag that someone adds to the list.
func TestFlagListsMatter(t *testing.T) {
	held := 0
	grow := func(name, f string) {
		p, c := newReaders(t), commands.OwnTable(t)[name]
		command := name + " " + f
		flag, _, _ := strings.Cut(f, " ")
		if commands.Reader(name) == nil || !strings.HasPrefix(flag, "-") || flag[1] != '-' && len(flag) > 2 {
			return
		}
		c.ListFlag(flag)
		assert.Equal(t, policy.Allow, effect(t, p, command), "%s: another thing than the list refuses it", command)
		held++
	}
	for name, flags := range harmful {
		for _, f := range flags {
			grow(name, f)
		}
	}
	for name, flags := range harmfulGit {
		for _, f := range flags {
			if name != "for-each-ref" {
				grow("git "+name, f)
			}
		}
	}
	assert.Greater(t, held, 100)
}

// nod asks about a letter that the lists lack. nod also asks about a long flag that lacks the last
// letter of a listed flag, or has one letter more.
func TestUnlistedFlagsAsk(t *testing.T) {
	p := newReaders(t)
	try := func(line string, c *commands.Command) {
		letters, longs, all := c.Flags()
		if all {
			return
		}
		for letter := byte('!'); letter <= '~'; letter++ {
			if !unicode.IsLetter(rune(letter)) && !unicode.IsDigit(rune(letter)) || strings.IndexByte(letters, letter) >= 0 {
				continue
			}
			assert.NotEqual(t, policy.Allow, effect(t, p, line+" -"+string(letter)), "%s -%c", line, letter)
			assert.NotEqual(t, policy.Allow, effect(t, p, line+" -"+string(letter)+"x y.md"), "%s -%cx", line, letter)
		}
		for long := range longs {
			if _, listed := longs[long[:len(long)-1]]; len(long) > 1 && !listed {
				assert.NotEqual(t, policy.Allow, effect(t, p, line+" --"+long[:len(long)-1]+" x.md"), "%s --%s cut short", line, long)
			}
			assert.NotEqual(t, policy.Allow, effect(t, p, line+" --"+long+"x x.md"), "%s --%sx", line, long)
		}
	}
	for name := range commands.OwnTable(t) {
		if c := commands.Reader(name); c != nil {
			try(name, c)
		}
	}
}

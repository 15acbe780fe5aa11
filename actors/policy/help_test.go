package policy_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// helpedTool says how the test reads a program's options from the program's own help.
type helpedTool struct {
	help     []string // the words that print the help; nil means --help
	before   string   // words between the program's name and the option
	fewest   int      // the smallest number of options that the test must find in the help
	reviewed string   // harmless options whose help sounds as if the program wrote, deleted or ran something
}

// helpedTools are programs that .ci/run installs. nod allows only some options of these programs.
var helpedTools = map[string]helpedTool{
	"ls":        {fewest: 50, reviewed: "--author --dereference-command-line --dereference-command-line-symlink-to-dir --hide --ignore --quoting-style --show-control-chars --time -1 -C -H -I -l -x"},
	"cat":       {fewest: 10},
	"head":      {fewest: 6},
	"tail":      {fewest: 10, reviewed: "--bytes --lines --max-unchanged-stats -c -n"},
	"wc":        {fewest: 6},
	"sort":      {fewest: 30, reviewed: "--unique -u"},
	"uniq":      {fewest: 10},
	"cut":       {fewest: 9},
	"nl":        {fewest: 11},
	"tr":        {fewest: 4, reviewed: "-d --delete -s --squeeze-repeats"},
	"tac":       {fewest: 3},
	"paste":     {fewest: 3},
	"fold":      {fewest: 3},
	"expand":    {fewest: 2},
	"comm":      {fewest: 6},
	"cmp":       {fewest: 5},
	"diff":      {fewest: 45, reviewed: "-e --ed -u -U --unified -c -C --context --color -q --brief"},
	"grep":      {fewest: 40, before: "-e x"},
	"sed":       {fewest: 14, before: "-e p", reviewed: "--in-place --posix --regexp-extended --unbuffered -E -i -r -u"},
	"stat":      {fewest: 5},
	"du":        {fewest: 25, reviewed: "--all --dereference-args --max-depth -D -a -d"},
	"df":        {fewest: 12, reviewed: "--exclude-type --no-sync --sync --type -t -x"},
	"basename":  {fewest: 3, reviewed: "-s --suffix"},
	"dirname":   {fewest: 1},
	"realpath":  {fewest: 8},
	"readlink":  {fewest: 8},
	"md5sum":    {fewest: 4, reviewed: "--tag"},
	"sha256sum": {fewest: 4, reviewed: "--tag"},
	"od":        {fewest: 10, reviewed: "--read-bytes -N"},
	"date":      {fewest: 8, reviewed: "-R --rfc-email -I --iso-8601 --rfc-3339"},
	"id":        {fewest: 6},
	"uname":     {fewest: 8},
	"nproc":     {fewest: 2},
	"seq":       {fewest: 3},
	"rg":        {help: []string{"-h"}, fewest: 100, before: "-e x", reviewed: "--json --line-buffered --null --passthru --quiet --replace --trim -q -r"},
	"jq":        {help: []string{"-h"}, fewest: 12, before: "."},
	"file":      {fewest: 15, reviewed: "--brief -b"},
	"strings":   {fewest: 8, reviewed: "-v"},
	"column":    {fewest: 8, reviewed: "--table -t"},
	"hexdump":   {fewest: 8},
	"free":      {fewest: 8},
	"uptime":    {fewest: 2},
	"tree":      {fewest: 40, reviewed: "-J -X"},
	"make":      {fewest: 40, reviewed: "--always-make --dry-run --ignore-errors --just-print --keep-going --no-print-directory --output-sync --print-directory --quiet --silent --touch --trace -B -O -i -k -n -q -s -t -w"},
	"gzip":      {fewest: 14, before: "-k", reviewed: "--decompress --keep --name --no-name --rsyncable --stdout -N -c -d -k -n"},
	"bzip2":     {fewest: 8, before: "-k", reviewed: "-c --stdout -k --keep"},
	"xz":        {fewest: 18, before: "-k", reviewed: "-c --stdout -k --keep"},
	"zstd":      {help: []string{"-H"}, fewest: 30, before: "-k", reviewed: "--keep --long --no-dictID --no-progress --progress --stdout -c -k"},
	"pytest":    {fewest: 60, reviewed: "-c -p --cache-clear --capture --co --collect-only --confcutdir --doctest-modules --exitfirst --failed-first --ff --fixtures --last-failed --lf --log-level --markers --new-first --nf --setup-only --setup-show --show-capture -k -m -s -x"},
	"readelf":   {fewest: 20, reviewed: "--hex-dump --program-headers --relocated-dump --segments --string-dump -R -l -p -x"},
	"ldd":       {fewest: 3},
	"ps":        {help: []string{"--help", "all"}, fewest: 10, reviewed: "-f"},
	"xargs":     {fewest: 12, reviewed: "-r --no-run-if-empty -P --max-procs -n --max-args -t --verbose -I -p -L -d -s -a -0 --null"},
	"lz4":       {help: []string{"-H"}, fewest: 10, before: "-k", reviewed: "-k -c"},
	"gawk":      {fewest: 10},
	"tar":       {fewest: 60, before: "-t", reviewed: "-a"},
}

// optionLine matches a line about options in a program's help. Its groups are the spaces, the
// options, and the description.
var optionLine = regexp.MustCompile(`^( {1,10}|\t)(-{1,2}[^\s,]\S*(?:,? +-{1,2}\S+| <?[A-Z][A-Za-z_#-]*>?)*(?: [a-z#]+)?)(?:\s*$|\s\s+|\s*:\s|\t)(.*)$`)

// acts matches the description of an option that may make a program write, delete, run something,
// or read instructions from a file.
var acts = regexp.MustCompile(`(?i)\b(?:writ(?:e|es|ing|ten)|delet\w*|remov\w*|overwrit\w*|creat\w*|execut\w*|runs?\b|running|invok\w*|command|program|script|shell|compil\w*|in.place|unlink|edit|renam\w*|log|dump|export|output to|output file|to FILE|to OUTPUT|save|plugin|module|load)\b`)

type helpOption struct {
	names []string
	value bool
	says  string
}

func helpOptions(t *testing.T, name string, words []string) (out []helpOption) {
	t.Helper()
	if words == nil {
		words = []string{"--help"}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, words...)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "LC_ALL=C", "COLUMNS=200")
	raw, _ := cmd.CombinedOutput() // some programs exit with an error after their help
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimRight(line, "\n")
		m := optionLine.FindStringSubmatch(line)
		if m == nil {
			if n := len(out) - 1; n >= 0 && strings.HasPrefix(line, "    ") {
				out[n].says += " " + strings.TrimSpace(line)
			}
			continue // a heading belongs to no description
		}
		o := helpOption{says: m[3]}
		for _, w := range regexp.MustCompile(`[, |]+`).Split(m[2], -1) {
			if !strings.HasPrefix(w, "-") {
				o.value = true
				continue
			}
			flag := regexp.MustCompile(`^--?\[?(?:no-\])?[A-Za-z0-9][A-Za-z0-9-]*`).FindString(w)
			o.value = o.value || strings.ContainsAny(w[len(flag):], "=<[")
			if flag != "" && !strings.Contains(flag, "[") {
				o.names = append(o.names, flag)
			}
		}
		out = append(out, o)
	}
	return out
}

// No preset allows an option whose help says that the program writes, deletes or runs something.
// Options that a person has reviewed are exceptions.
func TestNoOptionThatActsRunsWithoutAQuestion(t *testing.T) {
	for name, tool := range helpedTools {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatalf("%s is not installed: .ci/run installs it", name)
				}
				t.Skipf("left out: %s is not installed", name)
			}
			found, asked, free := 0, 0, []string{}
			for _, o := range helpOptions(t, name, tool.help) {
				found += len(o.names)
				for _, flag := range o.names {
					if !acts.MatchString(o.says) || slices.Contains(strings.Fields(tool.reviewed+" --help --version -h -V"), flag) {
						continue
					}
					for _, preset := range []string{policy.PresetReaders, policy.PresetContained} {
						p := pol(t, schemas.Permissions{Preset: preset})
						for _, words := range []string{flag, flag + " main.go", flag + "=main.go", flag + "main.go"} {
							if flag == words && o.value {
								continue
							}
							line := strings.Join(strings.Fields(name+" "+tool.before+" "+words+" a.txt"), " ")
							if v := p.Check(bash(t, line)); v.Effect == policy.Allow || v.Effect == policy.Contain {
								free = append(free, flag+": "+preset+" "+string(v.Effect)+": "+line+" ("+o.says[:min(len(o.says), 120)]+")")
							} else {
								asked++
							}
						}
					}
				}
			}
			assert.GreaterOrEqual(t, found, tool.fewest, "options found in the help of %s", name)
			assert.Empty(t, free)
			t.Logf("%d options, %d lines with acting options ask", found, asked)
		})
	}
}

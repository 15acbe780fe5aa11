package shell

import (
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/shell/word"
)

// findTests maps the tests and actions of find that only select and print files to the number of
// words that follow.
var findTests = map[string]int{
	"-name": 1, "-iname": 1, "-path": 1, "-ipath": 1, "-wholename": 1, "-iwholename": 1, "-regex": 1, "-iregex": 1, "-regextype": 1,
	"-type": 1, "-xtype": 1, "-maxdepth": 1, "-mindepth": 1, "-size": 1, "-mtime": 1, "-mmin": 1, "-atime": 1, "-amin": 1, "-ctime": 1,
	"-cmin": 1, "-newer": 1, "-newermt": 1, "-perm": 1, "-user": 1, "-group": 1, "-links": 1, "-printf": 1, "-inum": 1, "-lname": 1,
	"-empty": 0, "-not": 0, "-o": 0, "-or": 0, "-a": 0, "-and": 0, "-print": 0, "-print0": 0, "-prune": 0, "-xdev": 0, "-mount": 0,
	"-depth": 0, "-readable": 0, "-writable": 0, "-executable": 0, "-quit": 0, "-ls": 0, "-follow": 0, "-true": 0, "-false": 0, "-nouser": 0,
	"-nogroup": 0, "!": 0, "(": 0, ")": 0, ",": 0, "-L": 0, "-H": 0, "-P": 0,
}

// findFiles allows find commands that only select and print files.
func (line *Line) findFiles(words []word.Word) (string, bool) {
	tests := false
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w.Glob {
			return "a pattern outside quotes may stand for an action", false
		}
		n, known := findTests[w.Text]
		switch {
		case known:
			if i+n >= len(words) {
				return w.Text + " lacks its value", false
			}
			tests = tests || w.Text != "-L" && w.Text != "-H" && w.Text != "-P"
			for _, v := range words[i+1 : i+1+n] {
				if v.Glob || strings.HasPrefix(v.Text, "-") && !commands.IsCount(v.Text) && w.Text != "-perm" && w.Text != "-size" {
					return "the value of " + w.Text + " could be an action", false
				}
			}
			i += n
		case tests || strings.HasPrefix(w.Text, "-"):
			return w.Text + " is not a test known to be harmless", false
		case line.secretPath(w):
			return line.namesWhat(w), true
		}
	}
	return "", false
}

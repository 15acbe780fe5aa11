package shell

import (
	"fmt"
	"strings"

	"github.com/nodbus/nod/actors/policy/shell/word"
)

// SplitCommand returns the words of a rule's command, which must be one plain command. Its
// errors are for the author of the rule.
func SplitCommand(s string) ([]string, error) {
	file := parse(s)
	if file == nil || word.Hidden(s) != "" {
		return nil, fmt.Errorf("the command in it cannot be parsed")
	}
	calls := allCalls(file)
	if len(file.Stmts) != 1 || len(calls) != 1 || len(calls[0].Assigns) > 0 || len(file.Stmts[0].Redirs) > 0 || len(calls[0].Args) == 0 {
		return nil, fmt.Errorf("a rule holds one plain command: write one rule for each command of a line")
	}
	var argv []string
	for _, a := range calls[0].Args {
		w, why := word.Read(a, s)
		if why != "" {
			return nil, fmt.Errorf("the command in it %s", why)
		}
		argv = append(argv, w.Text)
	}
	if strings.Trim(argv[0], "*") == "" {
		return nil, fmt.Errorf("the command's name cannot be a pattern: write Bash for every command")
	}
	return argv, nil
}

package commands

import "strings"

func checkSleep(_ Secrets, a *Args) string {
	if len(a.operands) != 1 || len(a.operands[0].Text) > 4 || strings.Trim(a.operands[0].Text, "0123456789.") != "" {
		return "does not wait for a number of seconds"
	}
	return ""
}

// checkPs allows only process numbers after -p. With any other value ps may read its flags by
// other rules, under which they show environments.
func checkPs(_ Secrets, a *Args) string {
	for _, f := range a.flags {
		if f.name == "p" && strings.Trim(f.value, "0123456789,") != "" {
			return "names a process other than by its number"
		}
	}
	return ""
}

// checkStrings refuses @FILE, even after --: strings reads flags and file names from
// such a file and prints every word that is neither.
func checkStrings(_ Secrets, a *Args) string {
	for _, o := range a.operands {
		if o.Lead || strings.HasPrefix(o.Text, "@") {
			return "reads flags from a file"
		}
	}
	return ""
}

// checkCommandV allows command -v and -V; without them command runs its operands.
func checkCommandV(_ Secrets, a *Args) string {
	if len(a.flags) == 0 {
		return "runs another command"
	}
	return ""
}

// checkDate allows printing a date; an operand that does not begin with + sets the clock.
func checkDate(_ Secrets, a *Args) string {
	if len(a.operands) == 1 && !strings.HasPrefix(a.operands[0].Text, "+") {
		return "could set the clock"
	}
	return ""
}

// checkDiff allows comparing files. Of two directories, diff prints the differences
// between all their files, secrets too.
func checkDiff(_ Secrets, a *Args) string {
	if a.has("q", "brief") {
		return ""
	}
	if a.has("r", "recursive") {
		return "reads whole directories, in which secrets may lie"
	}
	for _, o := range a.operands {
		if o.Text != "-" && !namesFile(o) {
			return "may read whole directories, in which secrets may lie"
		}
	}
	return ""
}

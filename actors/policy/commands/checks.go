package commands

import (
	"slices"
	"strings"
)

func checkSleep(_ Secrets, a *Args) string {
	if len(a.operands) != 1 || len(a.operands[0].Text) > 4 || strings.Trim(a.operands[0].Text, "0123456789.") != "" {
		return "does not wait for a number of seconds"
	}
	return ""
}

// checkPs allows only process numbers as the value of -p. After any other value, ps may read its
// flags differently and show the environments of processes.
func checkPs(_ Secrets, a *Args) string {
	for _, f := range a.flags {
		if f.name == "p" && strings.Trim(f.value, "0123456789,") != "" {
			return "names a process other than by its number"
		}
	}
	return ""
}

// checkStrings refuses every word @FILE, even after -- or as the value of a flag. The program named strings
// replaces @FILE by the words in FILE, and prints each of these words that is neither a flag nor a file.
func checkStrings(_ Secrets, a *Args) string {
	if slices.ContainsFunc(a.flags, func(f flag) bool { return strings.HasPrefix(f.value, "@") }) {
		return "reads flags from a file"
	}
	for _, o := range a.operands {
		if o.Lead || strings.HasPrefix(o.Text, "@") {
			return "reads flags from a file"
		}
	}
	return ""
}

// checkCommandV allows the builtin "command" only with the flag -v or -V. Without these flags, the
// builtin runs its operands as a command.
func checkCommandV(_ Secrets, a *Args) string {
	if len(a.flags) == 0 {
		return "runs another command"
	}
	return ""
}

// checkDate refuses an operand without a leading +, because date would set the clock to this operand.
func checkDate(_ Secrets, a *Args) string {
	if len(a.operands) == 1 && !strings.HasPrefix(a.operands[0].Text, "+") {
		return "could set the clock"
	}
	return ""
}

// checkDiff refuses operands that may be directories, because diff would print the differences
// between all files in two directories, including secrets.
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

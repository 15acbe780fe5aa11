package commands

import "strings"

// decidedByPeople are the harms about which a person decides, although the command would run
// contained: they lose work in the project, or are meant for something outside it.
var decidedByPeople = map[Harm]bool{
	destroys: true, writesDisk: true, runsAsRoot: true, runsRemotely: true, publishes: true, changesSettings: true, stopsProcesses: true,
	stopsMachine: true, controlsContainers: true, changesSystems: true, installs: true,
}

// DecidedByPerson returns the reason why a person decides about a command even if it could run
// contained, or "".
func DecidedByPerson(argv []string) string {
	for _, h := range Harms(argv) {
		if decidedByPeople[h] {
			return h.Why
		}
	}
	return ""
}

// IsText reports whether the operands of a command are text and not paths or code.
func IsText(name string) bool { return Entry(name).Text }

// IsRunner reports whether the words are a runner: a command that builds, tests or checks the
// project.
func IsRunner(words ...string) bool { return Entry(strings.Join(words, " ")).runner }
